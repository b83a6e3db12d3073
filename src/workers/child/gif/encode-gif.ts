import type { EncoderSettings } from '../../../contract/image-formats.ts';
import { writeGif } from '../../../formats/gif/gif-writer.ts';
import type { Animation, Size } from '../../../formats/image-header.ts';
import type { Pixels } from '../pixels.ts';
import { choosePalette } from './choose-palette.ts';
import { drawChanges } from './draw-changes.ts';
import { FrameIndexer } from './index-frames.ts';

/** Minimum alpha of an opaque pixel: a GIF has no partial transparency. */
const OPAQUE_FROM = 128;

/**
 * Encodes frames as a GIF with one palette.
 *
 * @param strip frames, one below the other; an RGBA strip is overwritten
 * @param size of a frame
 * @param animation with a delay for each frame; `undefined` for a still
 */
export function encodeGif(
  strip: Pixels,
  size: Size,
  { colours: maxColours, dither, maxFrameError }: EncoderSettings['gif'],
  animation: Animation | undefined,
): Buffer {
  const pixels = toWords(strip);
  const isTransparent = animation !== undefined || pixels.includes(0);
  const palette = choosePalette(pixels, maxColours - (isTransparent ? 1 : 0));
  const transparentIndex = isTransparent ? palette.colours.length : undefined;
  const indexer = new FrameIndexer({ palette, transparentIndex, dither, maxFrameError });
  const framePixels = size.widthPx * size.heightPx;
  function* indexFrames(): Generator<Uint8Array> {
    for (let first = 0; first < pixels.length; first += framePixels) {
      yield indexer.index(pixels.subarray(first, first + framePixels), size.widthPx);
    }
  }
  const colours = palette.colours.flatMap((rgb) => [rgb & 0xff, (rgb >> 8) & 0xff, rgb >> 16]);
  return writeGif(
    {
      size,
      palette: Uint8Array.from(isTransparent ? [...colours, 0, 0, 0] : colours),
      transparentIndex,
      animation,
    },
    drawChanges(indexFrames(), size, transparentIndex),
  );
}

/** Converts pixels to words, alpha highest, red lowest; 0 for pixels that are not opaque. */
function toWords({ data, channels, widthPx, heightPx }: Pixels): Uint32Array {
  const count = widthPx * heightPx;
  const isGrey = channels < 3;
  const hasAlpha = channels === 2 || channels === 4;
  const isInPlace = channels === 4 && data.byteOffset % 4 === 0;
  const words = isInPlace
    ? new Uint32Array(data.buffer, data.byteOffset, count)
    : new Uint32Array(count);
  for (let at = 0, from = 0; at < count; at += 1, from += channels) {
    const alpha = hasAlpha ? data[from + channels - 1] : 255;
    const red = data[from];
    const green = isGrey ? red : data[from + 1];
    const blue = isGrey ? red : data[from + 2];
    const word = ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
    words[at] = alpha < OPAQUE_FROM ? 0 : word;
  }
  return words;
}
