/**
 * One capability row per image format: what it is called, what it can hold and what each quality
 * means in it (spec §3). Nothing else in the code asks "is it a gif?"; it asks the row.
 */

/** Formats an original may have; each is named after its magic bytes, never after its name. */
export type SourceFormat = 'jpeg' | 'png' | 'webp' | 'gif' | 'avif';

/** Formats an answer may be encoded in. */
export type OutputFormat = 'jpeg' | 'png' | 'webp' | 'gif';

/** File extensions and `format` values of the contract; `jpg` and `jpeg` are one format. */
export type Extension = 'png' | 'jpg' | 'jpeg' | 'webp' | 'gif';

/** The contract's three qualities (spec §2). */
export type Quality = 'high' | 'low' | 'lossless';

/** Options of sharp's encoder of the format, by sharp's own names (sharp `lib/output`). */
export type EncoderSettings = Readonly<Record<string, number | boolean | string>>;

interface SourceCapabilities {
  readonly mimeType: string;
  /** Whether the original's format can also be the answer's. */
  readonly encodesAs: OutputFormat;
}

/** What an original's format is called, and what it becomes when no format is asked for. */
export const sourceFormats = {
  jpeg: { mimeType: 'image/jpeg', encodesAs: 'jpeg' },
  png: { mimeType: 'image/png', encodesAs: 'png' },
  webp: { mimeType: 'image/webp', encodesAs: 'webp' },
  gif: { mimeType: 'image/gif', encodesAs: 'gif' },
  avif: { mimeType: 'image/avif', encodesAs: 'webp' },
} as const satisfies Record<SourceFormat, SourceCapabilities>;

interface OutputCapabilities {
  readonly mimeType: string;
  /** Extensions a file of the format has; the first is the usual one. */
  readonly extensions: readonly [Extension, ...Extension[]];
  readonly hasAlpha: boolean;
  readonly canAnimate: boolean;
  /** Longest edge the bitstream can express, in pixels. */
  readonly maxEdgePx: number;
  /** What each quality means; the same object twice means the two are one and the same. */
  readonly qualities: Readonly<Record<Quality, EncoderSettings>>;
}

/**
 * Level 6 costs a third more time than 3 for one percent of bytes; without filters, photographs are 40 %
 * larger (`npm run bench:quality`).
 */
const pngTrueColour = { palette: false, compressionLevel: 3, adaptiveFiltering: true };
const gifFullPalette = { colours: 256, effort: 3, dither: 1, keepDuplicateFrames: true };

/** sharp rounds a number of colours to 2, 4, 16 or 256. A pixel may also stay as it was before. */
const gifSmallPalette = { ...gifFullPalette, colours: 16, interFrameMaxError: 8 };

/** What can be answered with, and how. */
export const outputFormats = {
  jpeg: {
    mimeType: 'image/jpeg',
    extensions: ['jpg', 'jpeg'],
    hasAlpha: false,
    canAnimate: false,
    // ITU-T T.81 B.2.2 has room for 65 535; libjpeg stops short of it (JPEG_MAX_DIMENSION).
    maxEdgePx: 65_500,
    qualities: {
      high: { quality: 80, chromaSubsampling: '4:2:0' },
      low: { quality: 20, chromaSubsampling: '4:2:0' },
      lossless: { quality: 100, chromaSubsampling: '4:4:4' },
    },
  },
  png: {
    mimeType: 'image/png',
    extensions: ['png'],
    hasAlpha: true,
    canAnimate: false,
    maxEdgePx: 2 ** 31 - 1, // W3C PNG §11.2.1
    qualities: {
      high: pngTrueColour,
      low: { palette: true, quality: 20, effort: 1, dither: 1 },
      lossless: pngTrueColour,
    },
  },
  webp: {
    mimeType: 'image/webp',
    extensions: ['webp'],
    hasAlpha: true,
    canAnimate: true,
    maxEdgePx: 16_383, // RFC 9649 §2.5 and §3.4: 14-bit width and height of a bitstream
    qualities: {
      high: { quality: 80, effort: 4 },
      low: { quality: 20, effort: 4 },
      // exact: also the colour below fully transparent pixels, so that lossless means every bit.
      lossless: { lossless: true, exact: true, effort: 4 },
    },
  },
  gif: {
    mimeType: 'image/gif',
    extensions: ['gif'],
    hasAlpha: true,
    canAnimate: true,
    maxEdgePx: 65_535, // GIF89a §18: 16-bit logical screen
    qualities: {
      high: gifFullPalette,
      low: gifSmallPalette,
      lossless: gifFullPalette,
    },
  },
} as const satisfies Record<OutputFormat, OutputCapabilities>;

/** The format an extension or `format` value of the contract names. */
export function formatOfExtension(extension: Extension): OutputFormat {
  return extension === 'jpg' ? 'jpeg' : extension;
}

/** Whether `quality` loses nothing in `format` (spec §3, passthrough: "lossless or a lossless format"). */
export function isLossless(format: OutputFormat, quality: Quality): boolean {
  const { qualities } = outputFormats[format];
  return qualities[quality] === qualities.lossless;
}
