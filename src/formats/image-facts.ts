import type { SourceFormat } from '../contract/image-formats.ts';

/** A size in pixels; both edges are at least 1. */
export interface Size {
  readonly widthPx: number;
  readonly heightPx: number;
}

/** EXIF orientation: 1 upright, 2 to 4 mirrored or turned by 180°, 5 to 8 with sides swapped. */
export type Orientation = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;

/** Timing of an animation, as the file stores it. */
export interface Animation {
  /** Delay of each frame in milliseconds; 0 is kept. */
  readonly delaysMs: readonly number[];
  /** Total number of plays; 0 is for ever. */
  readonly plays: number;
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
  /** Number of frames, at least 1. The default image of an APNG need not be one of them. */
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
