/**
 * Capabilities of each image format, one row each: its names, what it can hold, what each quality means in it (contract
 * §3) and what its work costs. No other code asks "is it a GIF?"; code asks the row, or the row of its container in
 * `formats/containers.ts`.
 *
 * Costs are measured by `npm run measure:weights`, which explains the method and prints its results beside these: CPU
 * time with sharp 0.35.5 (libvips 8.18.7) on one core of an x86-64 server, for photographs of 0.7 to 6 megapixels and
 * for one flat colour of 12. Noise takes up to twice as long as a photograph. Machines differ; admission learns the
 * factor.
 */

/** Nanoseconds of one core per pixel: for a photograph, and for one flat colour. */
export type Weight = readonly [typicalNs: number, leastNs: number];

/** The contract's three qualities (contract §2). */
export type Quality = 'high' | 'low' | 'lossless';

/** Options of each format's encoder: those of sharp (sharp `lib/output`), or for GIF those of our `encode-gif.ts`. */
export interface EncoderSettings {
  readonly png: {
    readonly palette: boolean;
    readonly compressionLevel?: number;
    readonly adaptiveFiltering?: boolean;
    readonly quality?: number;
    readonly effort?: number;
    readonly dither?: number;
  };
  readonly jpeg: {
    readonly quality: number;
    readonly chromaSubsampling: '4:2:0' | '4:4:4';
  };
  /** Without the effort, which the operator sets (`RenderJob.webpEffort`). */
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

/** Formats a response may be encoded in. */
export type OutputFormat = keyof EncoderSettings;

interface OutputCapabilities<Settings> {
  readonly mimeType: string;
  /** File extensions of the format; the first is the usual one. */
  readonly extensions: readonly [string, ...string[]];
  readonly hasAlpha: boolean;
  readonly canAnimate: boolean;
  /** Whether assets keep their animation even without `animated=true`; attachments never do (contract §3). */
  readonly animatesUnasked: boolean;
  /** Longest edge the bitstream can express, in pixels. */
  readonly maxEdgePx: number;
  /** Encoder settings per quality; the same object twice means that the two qualities are equal. */
  readonly qualities: Readonly<Record<Quality, Settings>>;
  readonly encodeWeights: Readonly<Record<Quality, Weight>>;
  /** Weight of a lossless animation, if it is encoded with less effort than a still. */
  readonly losslessAnimationWeight?: Weight;
  /** Typical cost of each frame of an animation besides its pixels, in milliseconds. */
  readonly encodedFrameMs?: number;
  /** Omit if large lossless stills are encoded like others. */
  readonly largeStill?: LargeStill;
}

/** Encoding of lossless stills from a number of pixels on. */
interface LargeStill {
  readonly fromPixels: number;
  readonly settings: { readonly effort: number; readonly quality: number };
  readonly encodeWeight: Weight;
}

/**
 * Level 6 costs a third more time than 3 for one percent of bytes; without filters, photographs are 40 %
 * larger (`npm run bench:quality`).
 */
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
    animatesUnasked: false,
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
    animatesUnasked: false,
    // ITU-T T.81 B.2.2 has room for 65 535; libjpeg stops short of it (JPEG_MAX_DIMENSION).
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
    animatesUnasked: false,
    maxEdgePx: 16_383, // RFC 9649 §2.5 and §3.4: 14-bit width and height of a bitstream
    qualities: {
      high: { quality: 80 },
      low: { quality: 20 },
      // exact: also the colour below fully transparent pixels, so that lossless means every bit.
      lossless: { lossless: true, exact: true },
    },
    encodeWeights: { high: [140, 20], low: [100, 20], lossless: [570, 10] },
    losslessAnimationWeight: [220, 10],
    encodedFrameMs: 0.5,
    // `quality` bounds libwebp's search of a lossless encoding: a fifth of the time of effort 1, for 13 % more bytes of a
    // photograph.
    largeStill: {
      fromPixels: 4_000_000,
      settings: { effort: 0, quality: 20 },
      encodeWeight: [60, 10],
    },
  },
  gif: {
    mimeType: 'image/gif',
    extensions: ['gif'],
    hasAlpha: true,
    canAnimate: true,
    animatesUnasked: true,
    maxEdgePx: 65_535, // GIF89a §18: 16-bit logical screen
    qualities: {
      high: gifFullPalette,
      low: gifSmallPalette,
      lossless: gifFullPalette,
    },
    encodeWeights: { high: [145, 55], low: [120, 55], lossless: [145, 55] },
    encodedFrameMs: 0.1,
  },
} as const satisfies OutputRows;

/** File extensions and `format` values of the contract; `jpg` and `jpeg` are one format. */
export type Extension = (typeof outputRows)[OutputFormat]['extensions'][number];

/** Extensions of the formats that keep an animation only on request. */
export type StillExtension = {
  [Format in OutputFormat]: (typeof outputRows)[Format]['animatesUnasked'] extends false
    ? (typeof outputRows)[Format]['extensions'][number]
    : never;
}[OutputFormat];

export const outputFormats: OutputRows = outputRows;

const rows = Object.values(outputRows);

/** Extensions of all formats, in the order in which they are documented. */
export const extensions: readonly Extension[] = rows.flatMap((row) => [...row.extensions]);

/** Extensions of the formats that keep an animation only on request. */
export const stillExtensions: readonly StillExtension[] = rows
  .filter((row) => !row.animatesUnasked)
  .flatMap((row) => [...row.extensions]);

/** Returns the format that an extension or `format` value of the contract names. */
export function formatOfExtension(extension: Extension): OutputFormat {
  return extension === 'jpg' ? 'jpeg' : extension;
}

/** Whether `quality` loses nothing in `format` (contract §3, passthrough: "a lossless format"). */
export function isLossless(format: OutputFormat, quality: Quality): boolean {
  const { qualities } = outputFormats[format];
  return qualities[quality] === qualities.lossless;
}

/** Returns how a lossless still of so many pixels is encoded, if it is a large one. */
export function largeStillOf(format: OutputFormat, pixels: number): LargeStill | undefined {
  const { largeStill } = outputFormats[format];
  return largeStill !== undefined && pixels >= largeStill.fromPixels ? largeStill : undefined;
}

interface SourceCapabilities {
  readonly mimeType: string;
  /** Format of the response if the request names none. */
  readonly encodesAs: OutputFormat;
  /** The same for an animation, where it differs. */
  readonly animatesAs?: OutputFormat;
  /** Loader of libvips that reads the format; all others are blocked. Omitted if libvips decodes none of its files. */
  readonly loader?: string;
  readonly decodeWeight: Weight;
  /** For decoders that can skip pixels by powers of two: the weight if they reduce by two at least. */
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
    // The least weight is that of a canvas on which next to nothing is drawn.
    decodeWeight: [27, 1],
    decodedFrameMs: 1.1, // each frame is a file of its own
  },
  // Full weight, although the decoder skips pixels for a much smaller result: that saves a third, not nine tenths.
  webp: {
    mimeType: 'image/webp',
    encodesAs: 'webp',
    loader: 'VipsForeignLoadWebpBuffer',
    decodeWeight: [25, 10],
    decodedFrameMs: 0.8, // each frame is an image of its own
  },
  gif: {
    mimeType: 'image/gif',
    encodesAs: 'gif',
    decodeWeight: [18, 6],
  },
  avif: {
    mimeType: 'image/avif',
    encodesAs: 'webp',
    loader: 'VipsForeignLoadHeifBuffer',
    decodeWeight: [65, 40],
  },
  // libvips cannot decode HEIC: it reads a PNG that `workers/child/heic` makes of its pixels.
  heic: {
    mimeType: 'image/heic',
    encodesAs: 'webp',
    loader: 'VipsForeignLoadPngBuffer',
    decodeWeight: [110, 60],
  },
} as const satisfies Record<string, SourceCapabilities>;

/** Formats an original may have; detected from its bytes, never from its name. */
export type SourceFormat = keyof typeof sourceRows;

export const sourceFormats: Readonly<Record<SourceFormat, SourceCapabilities>> = sourceRows;

/** Extensions in the names of originals: all formats, and HEIC's second extension. */
export const sourceExtensions: readonly string[] = [
  ...new Set([...extensions, ...Object.keys(sourceRows), 'heif']),
];

/**
 * Version of everything that decides which bytes a request gives: our transforms and the codecs below them. It goes
 * into every ETag; change it with any change of either (a test compares the codecs').
 */
export const PIPELINE_RELEASE = '11-sharp0.35.5-vips8.18.7';

/** Default effort of the WebP encoder: 0 to 6 (libwebp's `method`). */
export const DEFAULT_WEBP_EFFORT = 4;

/** Appends an effort other than the default to the release, since another effort gives other bytes. */
export function releaseWithEffort(webpEffort: number): string {
  return webpEffort === DEFAULT_WEBP_EFFORT
    ? PIPELINE_RELEASE
    : `${PIPELINE_RELEASE}-effort${webpEffort}`;
}
