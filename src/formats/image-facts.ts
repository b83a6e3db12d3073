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
  /** Milliseconds each frame is shown, one per frame; 0 is left as it is. */
  readonly delaysMs: readonly number[];
  /** How often the animation plays in all; 0 is for ever. */
  readonly plays: number;
}

/** What the container tells of an original without decoding a pixel. */
export interface ImageFacts {
  readonly format: SourceFormat;
  /** Width as the decoder (libvips 8.18) gives it, before EXIF orientation is applied. */
  readonly widthPx: number;
  /** Height of one frame, before EXIF orientation is applied. */
  readonly heightPx: number;
  /** 1 where absent or out of range; always 1 for AVIF, whose decoder turns the image itself. */
  readonly orientation: Orientation;
  /** Frames the file holds, at least 1. The default image of an APNG need not be one of them. */
  readonly frames: number;
  /** Pixels that are decoded for one frame, where that is more than it has: tiles, cut edges. */
  readonly codedPixels?: number | undefined;
  /** Scans of a JPEG: each goes over all pixels, however small the result is to be. */
  readonly scans?: number | undefined;
  /** Only where there is more than one frame, or one that is not what a still shows. */
  readonly animation: Animation | undefined;
  /** Why the frames cannot be shown, although a still can; for the log alone. */
  readonly animationFault?: string | undefined;
  /** Why a still cannot be shown, which its decoder would find out at great cost; for the log alone. */
  readonly dataFault?: string | undefined;
  /**
   * Exponent of a PNG's own transfer function (sample = light ^ gamma), where it says one and no
   * profile overrides it; sRGB is about 1 / 2.2.
   */
  readonly gamma?: number | undefined;
  /**
   * True where the file could be sent out as it is: no metadata, no colour profile, nothing
   * private or unknown, no byte after its end, upright, grey or RGB. Never true for AVIF.
   */
  readonly isClean: boolean;
  /**
   * True where the container can be written anew without what is no part of the picture, and all decoders are at
   * one about what is left: no image without colours or without pixels.
   */
  readonly isRewritable?: boolean;
}
