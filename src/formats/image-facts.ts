import type { SourceFormat } from '../contract/image-formats.ts';

/** A size in pixels; both edges are at least 1. */
export interface Size {
  readonly widthPx: number;
  readonly heightPx: number;
}

/** EXIF orientation: 1 upright, 2 to 4 mirrored or turned by 180°, 5 to 8 with sides swapped. */
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

/** Position of a frame on the canvas of an animation, and how the frame is drawn and disposed. */
export interface FramePlacement extends Size {
  readonly leftPx: number;
  readonly topPx: number;
  /** Whether the frame's pixels replace those below, alpha included, or are composited over them. */
  readonly blend: 'source' | 'over';
  /** Treatment of the frame's region before the next frame: kept, cleared to transparent black, or restored. */
  readonly dispose: 'none' | 'background' | 'previous';
}

/** A frame of an animation whose image is a file of its own: a still of the size of the region. */
export interface FramePatch extends FramePlacement {
  readonly file: Uint8Array;
}

/** Facts that the container reveals without decoding a pixel. */
export interface ImageFacts {
  readonly format: SourceFormat;
  /** Width as the decoder (libvips 8.18) returns it, before EXIF orientation is applied. */
  readonly widthPx: number;
  /** Height of one frame, before EXIF orientation is applied. */
  readonly heightPx: number;
  /** 1 if missing or out of range; always 1 for AVIF, whose decoder turns the image itself. */
  readonly orientation: Orientation;
  /**
   * Number of frames, at least 1. The default image of an APNG need not be one of them. A prefix has 1 for a still, and
   * any number for a format that may be animated.
   */
  readonly frames: number;
  /** Pixels that are decoded for one frame, if these are more than its size: tiles, cropped edges. */
  readonly codedPixels?: number | undefined;
  /** Scans of a JPEG: each covers all pixels, however small the result is. */
  readonly scans?: number | undefined;
  /** Set only if there are several frames, or one that differs from the still. */
  readonly animation: Animation | undefined;
  /** Reason why the frames cannot be shown, although a still can; for the log alone. */
  readonly animationFault?: string | undefined;
  /** Reason why a still cannot be shown, which its decoder would find at great cost; for the log alone. */
  readonly dataFault?: string | undefined;
  /**
   * Exponent of a PNG's own transfer function (sample = light ^ gamma), if the file has one and no profile overrides
   * it; sRGB's is about 1 / 2.2.
   */
  readonly gamma?: number | undefined;
  /** Code points of a PNG (`cICP`), which take precedence over its profile and its gamma. */
  readonly codePoints?: CodePoints | undefined;
  /** Whether all samples have at most 8 bits, no profile and no code points, and the size is the decoder's, without asking it. */
  readonly isPlain?: boolean;
  /** Whether pixels have been encoded with loss. */
  readonly hasLoss?: boolean;
  /**
   * Whether the file could be sent unchanged: no metadata, no colour profile, nothing private or unknown, no byte after
   * its end, upright, grey or RGB. Never true for AVIF.
   */
  readonly isClean: boolean;
  /**
   * Whether the container can be rewritten without its non-image parts, and all decoders agree about the rest: no image
   * without colours or without pixels.
   */
  readonly isRewritable?: boolean;
}

/** The beginning of a file. Its readers return the facts that stand before the first pixels. */
export interface Prefix {
  /** Whether no longer prefix will be read: a header that is cut off then reveals what it can. */
  readonly isLongest: boolean;
}

/** Far below any delay: keeps a sum of fractions that should end on a half from falling short of it. */
const FRACTION_ERROR = 1e-6;

/**
 * Rounds each delay, perhaps a fraction, to the nearest whole unit of a container, and carries its rounding error over
 * to the next, so that the frames stay in time (contract §3).
 *
 * @param maxUnits longest delay that the container can hold; the excess of a longer delay is not carried over
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
