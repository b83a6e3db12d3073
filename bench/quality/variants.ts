import sharp, { type ResizeOptions } from 'sharp';
import { outputFormats } from '../../src/contract/image-formats.ts';
import { readImageFacts } from '../../src/formats/read-image-facts.ts';
import { mayShrinkOnLoad } from '../../src/pipeline/render/plan.ts';

/** One way to make a rendering of a photograph; the first of each format is what Darkroom does. */
export interface Variant {
  readonly name: string;
  readonly format: 'webp' | 'jpeg' | 'png';
  readonly render: (source: Buffer, widthPx: number) => Promise<Buffer>;
}

interface Recipe {
  readonly resize?: ResizeOptions;
  /** Resize by light, as far as an exponent gives it, instead of by sRGB's values. */
  readonly isLinear?: boolean;
  readonly encoder?: Readonly<Record<string, number | boolean | string>>;
}

/** As the service does it. */
function usualResize(source: Buffer, widthPx: number): ResizeOptions {
  const facts = readImageFacts(source);
  if (facts === undefined) throw new Error('This is no photograph.');
  const heightPx = Math.round((facts.heightPx * widthPx) / facts.widthPx);
  return { fastShrinkOnLoad: mayShrinkOnLoad(facts, { widthPx, heightPx }) };
}

function variant(format: Variant['format'], name: string, recipe: Recipe = {}): Variant {
  const encoder = { ...outputFormats[format].qualities.high, ...recipe.encoder };
  return {
    name,
    format,
    render: (source, widthPx) => {
      const image = sharp(source, { failOn: 'warning', sequentialRead: true }).autoOrient();
      if (recipe.isLinear) image.gamma(2.2);
      return image
        .resize({ width: widthPx, ...usualResize(source, widthPx), ...recipe.resize })
        .toColourspace('srgb')
        .toFormat(format, encoder)
        .toBuffer();
    },
  };
}

const shared: readonly (readonly [string, Recipe])[] = [
  ['shrink on load as far as it goes', { resize: { fastShrinkOnLoad: true } }],
  ['a factor of two left to the filter', { resize: { fastShrinkOnLoad: false } }],
  ['resized by light', { isLinear: true }],
  ['kernel mitchell', { resize: { kernel: 'mitchell' } }],
  ['kernel cubic', { resize: { kernel: 'cubic' } }],
  ['kernel lanczos2', { resize: { kernel: 'lanczos2' } }],
  ['kernel mks2013', { resize: { kernel: 'mks2013' } }],
];

const webp: readonly (readonly [string, Recipe])[] = [
  ...[0, 1, 2, 3, 5, 6].map((effort) => [`effort ${effort}`, { encoder: { effort } }] as const),
  ['smart subsampling', { encoder: { smartSubsample: true } }],
  ['smart deblocking', { encoder: { smartDeblock: true } }],
  ['preset photo', { encoder: { preset: 'photo' } }],
  ['preset picture', { encoder: { preset: 'picture' } }],
];

const jpeg: readonly (readonly [string, Recipe])[] = [
  ['4:4:4', { encoder: { chromaSubsampling: '4:4:4' } }],
  ['Huffman tables of the standard', { encoder: { optimiseCoding: false } }],
  ['progressive', { encoder: { progressive: true } }],
  ['quantisation table 3', { encoder: { quantisationTable: 3 } }],
  ['MozJPEG', { encoder: { mozjpeg: true } }],
  ['trellis, deringing', { encoder: { trellisQuantisation: true, overshootDeringing: true } }],
];

const png: readonly (readonly [string, Recipe])[] = [
  ...[1, 2, 4, 6, 9].map(
    (compressionLevel) => [`level ${compressionLevel}`, { encoder: { compressionLevel } }] as const,
  ),
  ...[3, 6].map(
    (compressionLevel) =>
      [
        `level ${compressionLevel}, no filter`,
        { encoder: { compressionLevel, adaptiveFiltering: false } },
      ] as const,
  ),
];

/** All that is compared. */
export const variants: readonly Variant[] = [
  variant('webp', 'Darkroom'),
  ...[...shared, ...webp].map(([name, recipe]) => variant('webp', name, recipe)),
  variant('jpeg', 'Darkroom'),
  ...[...shared, ...jpeg].map(([name, recipe]) => variant('jpeg', name, recipe)),
  variant('png', 'Darkroom'),
  ...png.map(([name, recipe]) => variant('png', name, recipe)),
];
