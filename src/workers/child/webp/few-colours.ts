import type { Size } from '../../../formats/image-header.ts';
import type { Pixels } from '../pixels.ts';

/**
 * Maximum number of colours, alpha included, and minimum number of pixels for each. A palette, and the repeats that
 * lossless encoding finds, make such a picture small (bench/RESULTS.md).
 */
const MAX_COLOURS = 128;
const MIN_PIXELS_PER_COLOUR = 8;

/** Slots of the hash table, a power of two: several times the number of colours. */
const SLOTS = 2048;

/** Whether each frame has few colours. @param strip frames, one below the other */
export function hasFewColours({ data, channels }: Pixels, { widthPx, heightPx }: Size): boolean {
  const maxColours = Math.min(MAX_COLOURS, (widthPx * heightPx) / MIN_PIXELS_PER_COLOUR);
  const frameBytes = widthPx * heightPx * channels;
  const colours = new Float64Array(SLOTS);
  for (let first = 0; first < data.length; first += frameBytes) {
    colours.fill(-1);
    let count = 0;
    let last = -1;
    for (let at = first; at < first + frameBytes; at += channels) {
      let colour = 0;
      for (let sample = at; sample < at + channels; sample += 1)
        colour = colour * 256 + data[sample];
      if (colour === last) continue;
      last = colour;
      let slot = Math.imul(colour, 0x9e3779b1) >>> 21;
      while (colours[slot] !== colour && colours[slot] !== -1) slot = (slot + 1) % SLOTS;
      if (colours[slot] === colour) continue;
      colours[slot] = colour;
      count += 1;
      if (count > maxColours) return false;
    }
  }
  return true;
}
