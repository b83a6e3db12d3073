import type { SourceFormat } from '../contract/image-formats.ts';

/** Edges in pixels, at least 1. */
export interface Size {
  readonly widthPx: number;
  readonly heightPx: number;
}

/** EXIF orientation: 1 upright, 2 to 4 flipped or rotated by 180°, 5 to 8 with sides swapped. */
export type Orientation = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;

/** Colour primaries and transfer characteristics of samples (ITU-T H.273 tables 2 and 3); 2: unspecified. */
export interface CodePoints {
  readonly primaries: number;
  readonly transfer: number;
}

/** Timing of an animation, as the file stores it. */
export interface Animation {
  /** Delay of each frame in milliseconds; 0 is kept. */
  readonly delaysMs: readonly number[];
  /** Total number of plays; 0 is for ever. */
  readonly plays: number;
}

/** Position of a frame on the canvas, and how it is drawn and disposed. */
export interface FramePlacement extends Size {
  readonly leftPx: number;
  readonly topPx: number;
  /** Whether the pixels replace those below, alpha included, or are composited over them. */
  readonly blend: 'source' | 'over';
  /** Treatment of the region before the next frame: kept, cleared to transparent black, or restored. */
  readonly dispose: 'none' | 'background' | 'previous';
}

/** A frame whose image is a file of its own, a still of the region's size. */
export interface FramePatch extends FramePlacement {
  readonly file: Uint8Array;
}

/** Facts of a container that need no decoded pixel. */
export interface ImageHeader {
  readonly format: SourceFormat;
  /** Width from the decoder (libvips 8.18), before EXIF orientation. */
  readonly widthPx: number;
  /** Height of one frame, before EXIF orientation. */
  readonly heightPx: number;
  /** 1 if missing or out of range; always 1 for AVIF, whose decoder rotates the image. */
  readonly orientation: Orientation;
  /** Number of frames, at least 1, which need not include an APNG's default image; uncertain in a prefix. */
  readonly frames: number;
  /** Pixels that are decoded for one frame, if more than its size: tiles, cropped edges. */
  readonly codedPixels?: number | undefined;
  /** Scans of a JPEG, each over all pixels, however small the result is. */
  readonly scans?: number | undefined;
  /** Set only for several frames, or one that differs from the still. */
  readonly animation: Animation | undefined;
  /** Reason why only a still can be shown, for the log. */
  readonly animationError?: string | undefined;
  /** Reason why a still cannot be shown, which its decoder would find at great cost, for the log. */
  readonly dataError?: string | undefined;
  /** Exponent of a PNG's transfer function (sample = light ^ gamma), unless a profile overrides it. */
  readonly gamma?: number | undefined;
  /** Code points of a PNG (`cICP`), which override its profile and its gamma. */
  readonly codePoints?: CodePoints | undefined;
  /** Whether sharp needs no metadata call: at most 8 bits, no profile or code points, an undisputed size. */
  readonly isPlain?: boolean;
  readonly hasLoss?: boolean;
  /**
   * Whether the file may be sent unchanged: no metadata, no colour profile, nothing private or unknown, nothing after
   * its end, upright, grey or RGB. Never true for AVIF.
   */
  readonly isClean: boolean;
  /** Whether the container can be rewritten to its visible parts, and decoders agree about these. */
  readonly isRewritable?: boolean;
}

/** Beginning of a file, whose readers return the header before the first pixels. */
export interface Prefix {
  /** Whether no longer prefix follows: a header that is cut off then reveals what it can. */
  readonly isLongest: boolean;
}

/** Far below any delay: sums of fractions that should end on a half may fall short of it. */
const FRACTION_ERROR = 1e-6;

/**
 * Rounds each delay, perhaps a fraction, to whole units of a container, and carries its rounding error over, so that
 * frames stay in time (contract §3).
 *
 * @param maxUnits longest delay of the container; the excess is not carried over
 */
export function roundDelays(
  delaysMs: readonly number[],
  unitMs: number,
  maxUnits: number,
): number[] {
  let carried = 0;
  return delaysMs.map((delayMs) => {
    const exact = delayMs / unitMs + carried;
    const rounded = Math.round(exact + FRACTION_ERROR);
    carried = exact - rounded;
    return Math.min(Math.max(rounded, 0), maxUnits);
  });
}
