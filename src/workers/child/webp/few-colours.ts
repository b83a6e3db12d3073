import type { Size } from '../../../formats/image-header.ts';
import type { Pixels } from '../pixels.ts';

/**
 * Maximum number of colours, alpha included, and minimum number of pixels for each. A palette, and the repeats that
 * lossless encoding finds, make such a picture small (bench/RESULTS.md).
 */
const MAX_COLOURS = 128;
const MIN_PIXELS_PER_COLOUR = 8;

/** Whether each frame has few colours. @param strip frames, one below the other */
export function hasFewColours(strip: Pixels, size: Size): boolean {
  const maxColours = Math.min(MAX_COLOURS, (size.widthPx * size.heightPx) / MIN_PIXELS_PER_COLOUR);
  return splitFrames(strip, size).every((frame) => !exceeds(frame, strip.channels, maxColours));
}

/** Maximum pixels of a frame whose many colours are counted; for each pixel, counting takes up to 22 bytes of memory. */
const MAX_COUNTED_PIXELS = 1024 * 1024;

/**
 * Whether few pixels share colours: each frame has more than one for three pixels. False for large frames.
 *
 * @param strip frames in a column
 */
export function hasManyColours(strip: Pixels, size: Size): boolean {
  const pixels = size.widthPx * size.heightPx;
  if (pixels > MAX_COUNTED_PIXELS) return false;
  const maxColours = pixels / 3;
  return splitFrames(strip, size).every((frame) => exceeds(frame, strip.channels, maxColours));
}

function splitFrames({ data, channels }: Pixels, { widthPx, heightPx }: Size): Uint8Array[] {
  const frameBytes = widthPx * heightPx * channels;
  return Array.from({ length: data.length / frameBytes }, (_, frame) =>
    data.subarray(frame * frameBytes, (frame + 1) * frameBytes),
  );
}

/** Whether a frame has more than a number of colours, alpha included. */
function exceeds(frame: Uint8Array, channels: number, maxColours: number): boolean {
  // Four slots or more for each colour, a power of two of them.
  const bits = Math.ceil(Math.log2(4 * maxColours + 4));
  const slots = 2 ** bits;
  const colours = new Float64Array(slots).fill(-1);
  let count = 0;
  let last = -1;
  for (let at = 0; at < frame.length; at += channels) {
    let colour = 0;
    for (let sample = at; sample < at + channels; sample += 1)
      colour = colour * 256 + frame[sample];
    if (colour === last) continue;
    last = colour;
    let slot = Math.imul(colour, 0x9e3779b1) >>> (32 - bits);
    while (colours[slot] !== colour && colours[slot] !== -1) slot = (slot + 1) % slots;
    if (colours[slot] === colour) continue;
    colours[slot] = colour;
    count += 1;
    if (count > maxColours) return true;
  }
  return false;
}
