import sharp, { type ResizeOptions, type Sharp } from 'sharp';
import { outputFormats } from '../../src/contract/image-formats.ts';
import type { ImageFacts, Size } from '../../src/formats/image-facts.ts';
import { readImageFacts } from '../../src/formats/read-image-facts.ts';
import { mayShrinkOnLoad } from '../../src/pipeline/render/plan.ts';

/** One way to make a rendering of a photograph; the first of each group is what Darkroom does. */
export interface Variant {
  readonly name: string;
  /** Those that are compared with each other, by the result's format, and the original's where that is chosen. */
  readonly group: 'webp' | 'jpeg' | 'png' | 'webp from webp';
  readonly render: (source: Buffer, widthPx: number) => Promise<Buffer>;
}

interface Recipe {
  readonly resize?: ResizeOptions;
  /** Resize by light, as far as an exponent gives it, instead of by sRGB's values. */
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

/** The setting of an encoder at each of its values. */
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

/** Of a photograph that is to be this wide. */
function sizeOf({ widthPx, heightPx }: Size, toPx: number): Size {
  return { widthPx: toPx, heightPx: Math.round((heightPx * toPx) / widthPx) };
}

function factsOf(source: Buffer): ImageFacts {
  const facts = readImageFacts(source);
  if (facts === undefined) throw new Error('This is no photograph.');
  return facts;
}

function variant(format: 'webp' | 'jpeg' | 'png', name: string, recipe: Recipe): Variant {
  const { isLinear = false, resize } = recipe;
  const encoder = { ...outputFormats[format].qualities.high, ...recipe.encoder };
  return {
    name,
    group: format,
    render: (source, width) => {
      const facts = factsOf(source);
      // As the service does it.
      const fastShrinkOnLoad = mayShrinkOnLoad(facts, sizeOf(facts, width));
      const image = sharp(source, { failOn: 'warning', sequentialRead: true }).autoOrient();
      if (isLinear) image.gamma(2.2);
      return image
        .resize({ width, fastShrinkOnLoad, ...resize })
        .toColourspace('srgb')
        .toFormat(format, encoder)
        .toBuffer();
    },
  };
}

/** The photographs as WebP, made once for each. */
const webpOf = new WeakMap<Buffer, Promise<Buffer>>();

/**
 * Of a WebP, which its decoder can reduce to any size.
 *
 * @param multiple of the wanted size, to which the decoder reduces; the filter does the rest. `undefined`: it does all
 */
function variantFromWebp(name: string, multiple: number | undefined): Variant {
  return {
    name,
    group: 'webp from webp',
    render: async (source, widthPx) => {
      const making =
        webpOf.get(source) ?? sharp(source).autoOrient().webp({ quality: 90 }).toBuffer();
      webpOf.set(source, making);
      const original = await making;
      const facts = factsOf(original);
      const scale = (image: Sharp, { widthPx: width, heightPx: height }: Size): Sharp =>
        image.resize({ width, height, fit: 'fill', fastShrinkOnLoad: multiple !== undefined });
      let image = sharp(original, { failOn: 'warning', sequentialRead: true });
      if (multiple !== undefined) {
        const reduced = scale(image, sizeOf(facts, Math.round(widthPx * multiple)));
        const { data, info } = await reduced.raw().toBuffer({ resolveWithObject: true });
        image = sharp(data, { raw: info });
      }
      return scale(image, sizeOf(facts, widthPx))
        .toColourspace('srgb')
        .webp(outputFormats.webp.qualities.high)
        .toBuffer();
    },
  };
}

export const variants: readonly Variant[] = [
  ...(['webp', 'jpeg', 'png'] as const).flatMap((format) =>
    Object.entries(recipes[format]).map(([name, recipe]) => variant(format, name, recipe)),
  ),
  variantFromWebp('Darkroom', undefined),
  ...[4, 3, 2, 1.5, 1].map((multiple) =>
    variantFromWebp(`decoded to ${multiple} times its size`, multiple),
  ),
];
