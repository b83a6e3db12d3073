import type { SourceFormat } from '../contract/image-formats.ts';

/** Size in pixels, at least 1×1. */
export interface Size {
  readonly widthPx: number;
  readonly heightPx: number;
}

/** EXIF orientation: 1 needs no change, 2 to 4 are flipped or rotated by 180°, 5 to 8 have swapped sides. */
export type Orientation = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;

/** Colour primaries and transfer characteristics (ITU-T H.273 tables 2 and 3); 2 means unspecified. */
export interface CodePoints {
  readonly primaries: number;
  readonly transfer: number;
}

/** Timing of an animation as stored in the file. */
export interface Animation {
  /** Delay of each frame in milliseconds; may be 0. */
  readonly delaysMs: readonly number[];
  /** Total number of plays; 0 means for ever. */
  readonly plays: number;
}

/** Position, blending and disposal of a frame on the canvas. */
export interface FramePlacement extends Size {
  readonly leftPx: number;
  readonly topPx: number;
  /** Whether the pixels replace those below, with alpha, or are composited over them. */
  readonly blend: 'source' | 'over';
  /** Treatment of the region before the next frame: kept, cleared to transparent black, or restored. */
  readonly dispose: 'none' | 'background' | 'previous';
}

/** A frame as a separate file, a still of the region's size. */
export interface FramePatch extends FramePlacement {
  readonly file: Uint8Array;
}

/** Properties of an image that its container reveals without decoding pixels. */
export interface ImageHeader {
  readonly format: SourceFormat;
  /** Width as libvips 8.18 decodes it, before EXIF orientation. */
  readonly widthPx: number;
  /** Height of one frame, before EXIF orientation. */
  readonly heightPx: number;
  /** 1 if missing or invalid; always 1 for AVIF, whose decoder rotates the image. */
  readonly orientation: Orientation;
  /** Number of frames, at least 1; an APNG's default image may not count. Unreliable in a prefix. */
  readonly frames: number;
  /** Pixels decoded for one frame, if more than its size: tiles, cropped edges. */
  readonly codedPixels?: number | undefined;
  /** Number of a JPEG's scans, each of which covers all pixels, regardless of the rendered size. */
  readonly scans?: number | undefined;
  /** Set only for several frames, or one that differs from the still. */
  readonly animation: Animation | undefined;
  /** Reason for the log why only a still can be shown. */
  readonly animationError?: string | undefined;
  /** Reason for the log why a still cannot be shown; the decoder would take long to detect it. */
  readonly dataError?: string | undefined;
  /** Exponent of a PNG's transfer function (sample = light ^ gamma), unless a profile overrides it. */
  readonly gamma?: number | undefined;
  /** Code points of a PNG (`cICP`), which override its profile and gamma. */
  readonly codePoints?: CodePoints | undefined;
  /** Whether sharp needs no metadata call: at most 8 bits, no profile or code points, an undisputed size. */
  readonly isPlain?: boolean;
  readonly hasLoss?: boolean;
  /**
   * Whether the file may be sent unchanged: grey or RGB, orientation 1, no metadata or profile, nothing private or
   * unknown, nothing after its end. Never true for AVIF.
   */
  readonly isClean: boolean;
  /** Whether the container can be rewritten to its visible parts, on which decoders agree. */
  readonly isRewritable?: boolean;
}

/** Marks bytes as a prefix of a file: readers return what precedes the pixels. */
export interface Prefix {
  /** Whether no longer prefix will follow: readers then accept a truncated header. */
  readonly isLongest: boolean;
}

/** Tolerance far below any delay: sums of fractions that should end in .5 may be slightly less. */
const FRACTION_ERROR = 1e-6;

/**
 * Rounds fractional delays to whole units of a container, and carries each rounding error over to the next delay, so
 * that frames stay in time (contract §3).
 *
 * @param maxUnits maximum delay of the container; the excess is not carried over
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
