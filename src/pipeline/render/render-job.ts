import type { EncoderSettings, OutputFormat, SourceFormat } from '../../contract/image-formats.ts';
import type { Animation, Orientation, Size } from '../../formats/image-facts.ts';

/** Everything a renderer must know; plain data, fit to cross a process boundary. */
export interface RenderJob {
  /** Format of the original, by its magic bytes and the codec of its primary image; of a `video`, one picture is shown. */
  readonly source: SourceFormat | 'video';
  /** The animation to keep, frame by frame; `undefined`: the first frame alone. */
  readonly animation: Animation | undefined;
  /** Size of one decoded frame, not yet oriented. */
  readonly originalSize: Size;
  /** EXIF orientation to undo before anything is measured. */
  readonly orientation: Orientation;
  /** Exponent of the samples' own transfer function (sample = light ^ gamma); `undefined`: a profile's, or sRGB's. */
  readonly gamma: number | undefined;
  /** Whether only the container is written anew (`rewrite` of its row); nothing is decoded then. */
  readonly isRewrite: boolean;
  /** `scale` to exactly `size`; `crop`: scale to cover `size`, then cut its centre out. */
  readonly resize: 'none' | 'scale' | 'crop';
  /** Whether the decoder may reduce all the way: see `mayShrinkOnLoad`. */
  readonly shrinksOnLoad: boolean;
  /** Size of the result, oriented. */
  readonly size: Size;
  readonly format: OutputFormat;
  readonly encoder: EncoderSettings;
  readonly maxInputPixels: number;
  /** Bytes of the encoded image. */
  readonly maxResultBytes: number;
  /** Whether the result is the ThumbHash of the picture, which fits into 100×100 px, instead of an image. */
  readonly isPlaceholder?: boolean;
}

/** Frames up to this are scaled together; beyond, copying costs as much as is gained. */
const MAX_TOGETHER_PIXELS = 320 * 320;

/** Whether the frames of an animation are scaled together, not one by one. */
export function scalesTogether({ resize, orientation, originalSize }: RenderJob): boolean {
  const { widthPx, heightPx } = originalSize;
  return resize === 'scale' && orientation === 1 && widthPx * heightPx <= MAX_TOGETHER_PIXELS;
}
