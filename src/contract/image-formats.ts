/**
 * One capability row per image format: what it is called, what it can hold, what each quality means in
 * it (contract §3) and what its work costs. Nothing else in the code asks "is it a GIF?"; it asks the row,
 * or that of its container in `formats/read-image-facts.ts`.
 *
 * Costs are measured by `npm run measure:weights`, which says how, and prints them beside these: with
 * sharp 0.35.5 (libvips 8.18.7) on one core of an x86-64 server, the CPU time of photographs of 0.7 to 6
 * megapixels, and of one flat colour of 12. Noise takes up to twice as long as a photograph. Machines
 * differ; admission learns by how much.
 */

/** Nanoseconds of one core per pixel: of a photograph, and of one flat colour. */
export type Weight = readonly [typicalNs: number, leastNs: number];

/** The contract's three qualities (contract §2). */
export type Quality = 'high' | 'low' | 'lossless';

/**
 * Options of the encoder of the format: of sharp's, by sharp's own names (sharp `lib/output`); of a GIF's, which is
 * ours, as `encode-gif.ts` has them.
 */
export type EncoderSettings = Readonly<Record<string, number | boolean | string>>;

interface OutputCapabilities {
  readonly mimeType: string;
  /** Extensions a file of the format has; the first is the usual one. */
  readonly extensions: readonly [string, ...string[]];
  readonly hasAlpha: boolean;
  readonly canAnimate: boolean;
  /** An asset keeps its animation without `animated=true`, too; an attachment never does (contract §3). */
  readonly animatesUnasked: boolean;
  /** Longest edge the bitstream can express, in pixels. */
  readonly maxEdgePx: number;
  /** Whether the operator chooses how hard its encoder tries (`WEBP_EFFORT`), in place of what the qualities say. */
  readonly hasEffort: boolean;
  /** What each quality means; the same object twice means the two are one and the same. */
  readonly qualities: Readonly<Record<Quality, EncoderSettings>>;
  readonly encodeWeights: Readonly<Record<Quality, Weight>>;
  /** Of each frame of an animation besides its pixels, in milliseconds: typically. */
  readonly encodedFrameMs: number;
}

/**
 * Level 6 costs a third more time than 3 for one percent of bytes; without filters, photographs are 40 %
 * larger (`npm run bench:quality`).
 */
const pngTrueColour = { palette: false, compressionLevel: 3, adaptiveFiltering: true };
const gifFullPalette = { colours: 256, dither: 0.75, maxFrameError: 2 };
const gifSmallPalette = { ...gifFullPalette, colours: 16, maxFrameError: 8 };

const outputRows = {
  png: {
    mimeType: 'image/png',
    extensions: ['png'],
    hasAlpha: true,
    canAnimate: false,
    animatesUnasked: false,
    maxEdgePx: 2 ** 31 - 1, // W3C PNG §11.2.1
    hasEffort: false,
    qualities: {
      high: pngTrueColour,
      low: { palette: true, quality: 20, effort: 1, dither: 1 },
      lossless: pngTrueColour,
    },
    encodeWeights: { high: [80, 10], low: [320, 20], lossless: [80, 10] },
    encodedFrameMs: 0,
  },
  jpeg: {
    mimeType: 'image/jpeg',
    extensions: ['jpg', 'jpeg'],
    hasAlpha: false,
    canAnimate: false,
    animatesUnasked: false,
    // ITU-T T.81 B.2.2 has room for 65 535; libjpeg stops short of it (JPEG_MAX_DIMENSION).
    maxEdgePx: 65_500,
    hasEffort: false,
    qualities: {
      high: { quality: 80, chromaSubsampling: '4:2:0' },
      low: { quality: 20, chromaSubsampling: '4:2:0' },
      lossless: { quality: 100, chromaSubsampling: '4:4:4' },
    },
    encodeWeights: { high: [21, 8], low: [19, 8], lossless: [60, 30] },
    encodedFrameMs: 0,
  },
  webp: {
    mimeType: 'image/webp',
    extensions: ['webp'],
    hasAlpha: true,
    canAnimate: true,
    animatesUnasked: false,
    maxEdgePx: 16_383, // RFC 9649 §2.5 and §3.4: 14-bit width and height of a bitstream
    hasEffort: true,
    qualities: {
      high: { quality: 80, effort: 4 },
      low: { quality: 20, effort: 4 },
      // exact: also the colour below fully transparent pixels, so that lossless means every bit.
      lossless: { lossless: true, exact: true, effort: 4 },
    },
    encodeWeights: { high: [140, 20], low: [100, 20], lossless: [570, 10] },
    encodedFrameMs: 0.5,
  },
  gif: {
    mimeType: 'image/gif',
    extensions: ['gif'],
    hasAlpha: true,
    canAnimate: true,
    animatesUnasked: true,
    maxEdgePx: 65_535, // GIF89a §18: 16-bit logical screen
    hasEffort: false,
    qualities: {
      high: gifFullPalette,
      low: gifSmallPalette,
      lossless: gifFullPalette,
    },
    encodeWeights: { high: [145, 55], low: [120, 55], lossless: [145, 55] },
    encodedFrameMs: 0.1,
  },
} as const satisfies Record<string, OutputCapabilities>;

/** Formats a response may be encoded in. */
export type OutputFormat = keyof typeof outputRows;

/** File extensions and `format` values of the contract; `jpg` and `jpeg` are one format. */
export type Extension = (typeof outputRows)[OutputFormat]['extensions'][number];

/** What a response can be encoded in, and how. */
export const outputFormats: Readonly<Record<OutputFormat, OutputCapabilities>> = outputRows;

const rows = Object.values(outputRows);

/** Extensions of all formats, in the order in which they are documented. */
export const extensions: readonly Extension[] = rows.flatMap((row) => [...row.extensions]);

/** Extensions of the formats that show an animation to those alone who ask for it. */
export const stillExtensions: readonly Extension[] = rows
  .filter((row) => !row.animatesUnasked)
  .flatMap((row) => [...row.extensions]);

/** The format an extension or `format` value of the contract names. */
export function formatOfExtension(extension: Extension): OutputFormat {
  return extension === 'jpg' ? 'jpeg' : extension;
}

/** Whether `quality` loses nothing in `format` (contract §3, passthrough: "a lossless format"). */
export function isLossless(format: OutputFormat, quality: Quality): boolean {
  const { qualities } = outputFormats[format];
  return qualities[quality] === qualities.lossless;
}

interface SourceCapabilities {
  readonly mimeType: string;
  /** What it becomes when no format is asked for. */
  readonly encodesAs: OutputFormat;
  /** What its animation becomes then, where that is another format. */
  readonly animatesAs?: OutputFormat;
  /** The loader of libvips that reads it; all others are blocked. */
  readonly loader: string;
  readonly decodeWeight: Weight;
  /** Where the decoder can leave pixels out by powers of two: when it reduces by two at least. */
  readonly reducedDecodeWeight?: Weight;
  /** Of each frame of an animation besides its pixels, in milliseconds: typically. */
  readonly decodedFrameMs: number;
}

const sourceRows = {
  jpeg: {
    mimeType: 'image/jpeg',
    encodesAs: 'jpeg',
    loader: 'VipsForeignLoadJpegBuffer',
    decodeWeight: [15, 0.5],
    reducedDecodeWeight: [2, 0.1],
    decodedFrameMs: 0,
  },
  png: {
    mimeType: 'image/png',
    encodesAs: 'png',
    loader: 'VipsForeignLoadPngBuffer',
    decodeWeight: [13, 4],
    decodedFrameMs: 0,
  },
  apng: {
    mimeType: 'image/apng',
    encodesAs: 'png',
    animatesAs: 'webp',
    loader: 'VipsForeignLoadPngBuffer',
    // Least: of a canvas on which next to nothing is drawn.
    decodeWeight: [27, 1],
    decodedFrameMs: 1.1, // each is a file of its own
  },
  // Weighed whole, although of a much smaller result its decoder leaves pixels out: that saves a third, not nine tenths.
  webp: {
    mimeType: 'image/webp',
    encodesAs: 'webp',
    loader: 'VipsForeignLoadWebpBuffer',
    decodeWeight: [25, 10],
    decodedFrameMs: 0.8, // each is an image of its own
  },
  gif: {
    mimeType: 'image/gif',
    encodesAs: 'gif',
    loader: 'VipsForeignLoadNsgifBuffer',
    decodeWeight: [9, 3],
    decodedFrameMs: 0,
  },
  avif: {
    mimeType: 'image/avif',
    encodesAs: 'webp',
    loader: 'VipsForeignLoadHeifBuffer',
    decodeWeight: [65, 40],
    decodedFrameMs: 0,
  },
  // libvips has no decoder of it: it reads a PNG that `workers/child/heic` makes of its pixels.
  heic: {
    mimeType: 'image/heic',
    encodesAs: 'webp',
    loader: 'VipsForeignLoadPngBuffer',
    decodeWeight: [110, 60],
    decodedFrameMs: 0,
  },
} as const satisfies Record<string, SourceCapabilities>;

/** Formats an original may have; each is named after its bytes, never after its name. */
export type SourceFormat = keyof typeof sourceRows;

/** What an original's format is called, and what it takes to decode it. */
export const sourceFormats: Readonly<Record<SourceFormat, SourceCapabilities>> = sourceRows;
