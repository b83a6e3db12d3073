const MAX_COLOURS = 256;

/** Slots of the table of colours, a power of two: several times their number. */
const SLOTS = 2048;

/**
 * Whether each frame has at most 256 colours, alpha included (contract §3). Stops at the first colour too many.
 *
 * @param data frames of the same size, one after the other
 */
export function hasFewColours(data: Uint8Array, channels: number, frameBytes: number): boolean {
  const colours = new Float64Array(SLOTS);
  for (let first = 0; first < data.length; first += frameBytes) {
    colours.fill(-1);
    let count = 0;
    let last = -1;
    for (let at = first; at < first + frameBytes; at += channels) {
      let colour = 0;
      for (let sample = at; sample < at + channels; sample += 1) {
        colour = colour * 256 + data[sample];
      }
      if (colour === last) continue;
      last = colour;
      let slot = Math.imul(colour, 0x9e3779b1) >>> 21;
      while (colours[slot] !== colour && colours[slot] !== -1) slot = (slot + 1) % SLOTS;
      if (colours[slot] === colour) continue;
      colours[slot] = colour;
      count += 1;
      if (count > MAX_COLOURS) return false;
    }
  }
  return true;
}
