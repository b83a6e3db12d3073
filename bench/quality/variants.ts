import sharp, { type ResizeOptions, type Sharp } from 'sharp';
import { outputFormats, type SourceFormat } from '../../src/contract/image-formats.ts';
import { mayShrinkOnLoad } from '../../src/pipeline/render/plan.ts';

/** One way to render a photograph; the first of each group is Darkroom's. */
export interface Variant {
  readonly name: string;
  /** Variants that are compared with each other: format of the result, and of the original where it matters. */
  readonly group: string;
  readonly render: (source: Buffer, widthPx: number) => Promise<Buffer>;
}

interface Recipe {
  readonly resize?: ResizeOptions;
  /** Whether to resize linear light, approximated by an exponent, instead of sRGB's values. */
  readonly isLinear?: boolean;
  readonly encoder?: Readonly<Record<string, number | boolean | string>>;
}

type Recipes = Readonly<Record<string, Recipe>>;

const resizes: Recipes = {
  'shrink on load as far as it goes': { resize: { fastShrinkOnLoad: true } },
  'a factor of two left to the filter': { resize: { fastShrinkOnLoad: false } },
  'resized by light': { isLinear: true },
  'kernel mitchell': { resize: { kernel: 'mitchell' } },
  'kernel cubic': { resize: { kernel: 'cubic' } },
  'kernel lanczos2': { resize: { kernel: 'lanczos2' } },
  'kernel mks2013': { resize: { kernel: 'mks2013' } },
};

/** Creates a recipe for each value of an encoder's setting. */
const steps = (title: string, values: readonly number[], setting: string): Recipes =>
  Object.fromEntries(
    values.map((value) => [`${title} ${value}`, { encoder: { [setting]: value } }]),
  );

const recipes: Readonly<Record<'webp' | 'jpeg' | 'png', Recipes>> = {
  webp: {
    Darkroom: {},
    ...resizes,
    ...steps('effort', [0, 1, 2, 3, 5, 6], 'effort'),
    'smart subsampling': { encoder: { smartSubsample: true } },
    'smart deblocking': { encoder: { smartDeblock: true } },
    'preset photo': { encoder: { preset: 'photo' } },
    'preset picture': { encoder: { preset: 'picture' } },
  },
  jpeg: {
    Darkroom: {},
    ...resizes,
    '4:4:4': { encoder: { chromaSubsampling: '4:4:4' } },
    'Huffman tables of the standard': { encoder: { optimiseCoding: false } },
    progressive: { encoder: { progressive: true } },
    'quantisation table 3': { encoder: { quantisationTable: 3 } },
    MozJPEG: { encoder: { mozjpeg: true } },
    'trellis, deringing': { encoder: { trellisQuantisation: true, overshootDeringing: true } },
  },
  png: {
    Darkroom: {},
    ...steps('level', [1, 2, 4, 6, 9], 'compressionLevel'),
    'level 3, no filter': { encoder: { compressionLevel: 3, adaptiveFiltering: false } },
    'level 6, no filter': { encoder: { compressionLevel: 6, adaptiveFiltering: false } },
  },
};

const open = (source: Buffer): Sharp =>
  sharp(source, { failOn: 'warning', sequentialRead: true }).autoOrient();

/** Reads the format and size of a photograph, and its size at another width. */
async function readFacts(source: Buffer, width: number) {
  const { format, autoOrient } = await sharp(source).metadata();
  return {
    original: {
      format: format as SourceFormat,
      widthPx: autoOrient.width,
      heightPx: autoOrient.height,
    },
    height: Math.round((autoOrient.height * width) / autoOrient.width),
  };
}

function createVariant(format: keyof typeof recipes, name: string, recipe: Recipe): Variant {
  return {
    name,
    group: format,
    render: async (source, width) => {
      const { original, height } = await readFacts(source, width);
      // As the service does it.
      const fastShrinkOnLoad = mayShrinkOnLoad(original, { widthPx: width, heightPx: height });
      const image = open(source);
      if (recipe.isLinear === true) image.gamma(2.2);
      return image
        .resize({ width, fastShrinkOnLoad, ...recipe.resize })
        .toColourspace('srgb')
        .toFormat(format, { ...outputFormats[format].qualities.high, ...recipe.encoder })
        .toBuffer();
    },
  };
}

/** Photographs as WebP, each made once. */
const webpOf = new WeakMap<Buffer, Promise<Buffer>>();

/**
 * Creates a variant for originals as WebP, whose decoder can reduce to any size.
 *
 * @param multiple of the wanted size, to which the decoder reduces before the filter; `undefined` if it does not reduce
 */
function createVariantFromWebp(name: string, multiple: number | undefined): Variant {
  return {
    name,
    group: 'webp from webp',
    render: async (source, width) => {
      const making =
        webpOf.get(source) ?? sharp(source).autoOrient().webp({ quality: 90 }).toBuffer();
      webpOf.set(source, making);
      let image = open(await making);
      if (multiple !== undefined) {
        const reduced = image.resize({ width: Math.round(width * multiple) });
        const { data, info } = await reduced.raw().toBuffer({ resolveWithObject: true });
        image = sharp(data, { raw: info });
      }
      const { height } = await readFacts(source, width);
      return image
        .resize({ width, height, fit: 'fill', fastShrinkOnLoad: false })
        .toColourspace('srgb')
        .webp(outputFormats.webp.qualities.high)
        .toBuffer();
    },
  };
}

export const variants: readonly Variant[] = [
  ...(['webp', 'jpeg', 'png'] as const).flatMap((format) =>
    Object.entries(recipes[format]).map(([name, recipe]) => createVariant(format, name, recipe)),
  ),
  createVariantFromWebp('Darkroom', undefined),
  ...[4, 3, 2, 1.5, 1].map((multiple) =>
    createVariantFromWebp(`decoded to ${multiple} times its size`, multiple),
  ),
];
