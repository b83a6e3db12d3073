/**
 * Image formats, one row each: names, capabilities, encoder settings per quality (contract §3) and costs. Other code reads
 * rows here and in `formats/containers.ts`, instead of comparing formats.
 *
 * Costs are CPU time with sharp 0.35.5 (libvips 8.18.7) on one core of an x86-64 server, for photographs of 0.7 to 6
 * megapixels and for 12 megapixels of one colour; noise takes up to twice as long as a photograph. `npm run
 * measure:weights` measures them. Admission learns the factor of the machine.
 */

/** Nanoseconds of one core per pixel: for a photograph, and for a single colour. */
export type Weight = readonly [typicalNs: number, minNs: number];

export type Quality = 'high' | 'low' | 'lossless';

/** Encoder options of sharp (`lib/output`), or for GIF of `encode-gif.ts`. */
export interface EncoderSettings {
  readonly png: {
    readonly palette: boolean;
    readonly compressionLevel?: number;
    readonly adaptiveFiltering?: boolean;
    readonly quality?: number;
    readonly effort?: number;
    readonly dither?: number;
  };
  readonly jpeg: { readonly quality: number; readonly chromaSubsampling: '4:2:0' | '4:4:4' };
  /** The operator sets the effort (`RenderJob.webpEffort`). */
  readonly webp: {
    readonly lossless?: boolean;
    readonly exact?: boolean;
    readonly quality?: number;
  };
  readonly gif: {
    readonly colours: number;
    readonly dither: number;
    readonly maxFrameError: number;
  };
}

export type OutputFormat = keyof EncoderSettings;

interface OutputCapabilities<Settings> {
  readonly mimeType: string;
  readonly extensions: readonly [string, ...string[]];
  readonly hasAlpha: boolean;
  readonly canAnimate: boolean;
  /** Whether assets are animated by default, without `animated=true`; attachments never are (contract §3). */
  readonly animatesByDefault: boolean;
  /** Maximum width and height of the bitstream in pixels. */
  readonly maxEdgePx: number;
  /** Encoder settings per quality. Qualities with equal bytes share one object. */
  readonly qualities: Readonly<Record<Quality, Settings>>;
  readonly encodeWeights: Readonly<Record<Quality, Weight>>;
  readonly losslessAnimationWeight?: Weight;
  /** Typical additional cost of each frame of an animation, in milliseconds. */
  readonly encodedFrameMs?: number;
  readonly largeStill?: LargeStill;
}

interface LargeStill {
  readonly fromPixels: number;
  readonly settings: { readonly effort: number; readonly quality: number };
  readonly encodeWeight: Weight;
}

/** Measured: level 6 takes a third longer than 3 for 1 % fewer bytes; without filters, photographs are 40 % larger. */
const pngTrueColour = { palette: false, compressionLevel: 3, adaptiveFiltering: true };
const gifFullPalette = { colours: 256, dither: 0.75, maxFrameError: 2 };
const gifSmallPalette = { ...gifFullPalette, colours: 16, maxFrameError: 8 };

type OutputRows = {
  readonly [Format in OutputFormat]: OutputCapabilities<EncoderSettings[Format]>;
};

const outputRows = {
  png: {
    mimeType: 'image/png',
    extensions: ['png'],
    hasAlpha: true,
    canAnimate: false,
    animatesByDefault: false,
    maxEdgePx: 2 ** 31 - 1, // W3C PNG §11.2.1
    qualities: {
      high: pngTrueColour,
      low: { palette: true, quality: 20, effort: 1, dither: 1 },
      lossless: pngTrueColour,
    },
    encodeWeights: { high: [80, 10], low: [320, 20], lossless: [80, 10] },
  },
  jpeg: {
    mimeType: 'image/jpeg',
    extensions: ['jpg', 'jpeg'],
    hasAlpha: false,
    canAnimate: false,
    animatesByDefault: false,
    // Limit of libjpeg (JPEG_MAX_DIMENSION); ITU-T T.81 B.2.2 allows 65 535.
    maxEdgePx: 65_500,
    qualities: {
      high: { quality: 80, chromaSubsampling: '4:2:0' },
      low: { quality: 20, chromaSubsampling: '4:2:0' },
      lossless: { quality: 100, chromaSubsampling: '4:4:4' },
    },
    encodeWeights: { high: [21, 8], low: [19, 8], lossless: [60, 30] },
  },
  webp: {
    mimeType: 'image/webp',
    extensions: ['webp'],
    hasAlpha: true,
    canAnimate: true,
    animatesByDefault: false,
    maxEdgePx: 16_383, // RFC 9649 §2.5 and §3.4: 14-bit width and height of a bitstream
    qualities: {
      high: { quality: 80 },
      low: { quality: 20 },
      // exact: keeps the colour of fully transparent pixels.
      lossless: { lossless: true, exact: true },
    },
    encodeWeights: { high: [140, 20], low: [100, 20], lossless: [570, 10] },
    losslessAnimationWeight: [220, 10],
    encodedFrameMs: 0.5,
    largeStill: {
      fromPixels: 4_000_000,
      settings: { effort: 0, quality: 20 }, // a fifth of the time of effort 1, for 13 % more bytes
      encodeWeight: [60, 10],
    },
  },
  gif: {
    mimeType: 'image/gif',
    extensions: ['gif'],
    hasAlpha: true,
    canAnimate: true,
    animatesByDefault: true,
    maxEdgePx: 65_535, // GIF89a §18: 16-bit logical screen
    qualities: { high: gifFullPalette, low: gifSmallPalette, lossless: gifFullPalette },
    encodeWeights: { high: [145, 55], low: [120, 55], lossless: [145, 55] },
    encodedFrameMs: 0.1,
  },
} as const satisfies OutputRows;

export type Extension = (typeof outputRows)[OutputFormat]['extensions'][number];

export type StillExtension = {
  [Format in OutputFormat]: (typeof outputRows)[Format]['animatesByDefault'] extends false
    ? (typeof outputRows)[Format]['extensions'][number]
    : never;
}[OutputFormat];

export const outputFormats: OutputRows = outputRows;

const rows = Object.values(outputRows);

export const extensions: readonly Extension[] = rows.flatMap((row) => [...row.extensions]);

export const stillExtensions: readonly StillExtension[] = rows
  .filter((row) => !row.animatesByDefault)
  .flatMap((row) => [...row.extensions]);

export function formatOfExtension(extension: Extension): OutputFormat {
  return extension === 'jpg' ? 'jpeg' : extension;
}

/** Whether a quality of a format is lossless (contract §3, passthrough: "a lossless format"). */
export function isLossless(format: OutputFormat, quality: Quality): boolean {
  const { qualities } = outputFormats[format];
  return qualities[quality] === qualities.lossless;
}

export function largeStillOf(format: OutputFormat, pixels: number): LargeStill | undefined {
  const { largeStill } = outputFormats[format];
  return largeStill !== undefined && pixels >= largeStill.fromPixels ? largeStill : undefined;
}

interface SourceCapabilities {
  readonly mimeType: string;
  readonly encodesAs: OutputFormat;
  readonly animatesAs?: OutputFormat;
  /** Loader of libvips for the format; all others are blocked. Omit if libvips does not decode it. */
  readonly loader?: string;
  readonly decodeWeight: Weight;
  /** Weight of decoders that can skip pixels, if they reduce by two or more. */
  readonly reducedDecodeWeight?: Weight;
  readonly decodedFrameMs?: number;
}

const sourceRows = {
  jpeg: {
    mimeType: 'image/jpeg',
    encodesAs: 'jpeg',
    loader: 'VipsForeignLoadJpegBuffer',
    decodeWeight: [15, 0.5],
    reducedDecodeWeight: [2, 0.1],
  },
  png: {
    mimeType: 'image/png',
    encodesAs: 'png',
    loader: 'VipsForeignLoadPngBuffer',
    decodeWeight: [13, 4],
  },
  apng: {
    mimeType: 'image/apng',
    encodesAs: 'png',
    animatesAs: 'webp',
    loader: 'VipsForeignLoadPngBuffer',
    // The minimum is for a nearly empty canvas.
    decodeWeight: [27, 1],
    decodedFrameMs: 1.1, // each frame is a separate file
  },
  // No reduced weight: for a much smaller result, the decoder skips pixels, but saves only a third of the time.
  webp: {
    mimeType: 'image/webp',
    encodesAs: 'webp',
    loader: 'VipsForeignLoadWebpBuffer',
    decodeWeight: [25, 10],
    decodedFrameMs: 0.8, // each frame is a separate image
  },
  gif: { mimeType: 'image/gif', encodesAs: 'gif', decodeWeight: [18, 6] },
  avif: {
    mimeType: 'image/avif',
    encodesAs: 'webp',
    loader: 'VipsForeignLoadHeifBuffer',
    decodeWeight: [65, 40],
  },
  // libvips reads a PNG that `workers/child/heic` makes of the pixels.
  heic: {
    mimeType: 'image/heic',
    encodesAs: 'webp',
    loader: 'VipsForeignLoadPngBuffer',
    decodeWeight: [110, 60],
  },
} as const satisfies Record<string, SourceCapabilities>;

/** Format of an original, detected from its bytes, never from its name. */
export type SourceFormat = keyof typeof sourceRows;

export const sourceFormats: Readonly<Record<SourceFormat, SourceCapabilities>> = sourceRows;

/** Extensions in file names of originals; HEIC has two. */
export const sourceExtensions: readonly string[] = [
  ...new Set([...extensions, ...Object.keys(sourceRows), 'heif']),
];

/**
 * Version of the transforms and codecs, part of every ETag: change it whenever bytes of responses change. A test compares
 * the versions of the codecs.
 */
export const PIPELINE_RELEASE = '13-sharp0.35.5-vips8.18.7';

export const DEFAULT_WEBP_EFFORT = 4;

/** Returns the release, with the effort if it is not the default, since it changes bytes. */
export function releaseWithEffort(webpEffort: number): string {
  const suffix = webpEffort === DEFAULT_WEBP_EFFORT ? '' : `-effort${webpEffort}`;
  return PIPELINE_RELEASE + suffix;
}
