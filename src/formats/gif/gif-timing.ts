import { roundDelays } from '../delay-rounding.ts';
import type { Animation } from '../image-facts.ts';
import { gifLabel, walkGifBlocks } from './gif-blocks.ts';

const CENTISECOND_MS = 10;

/** Longest delay a graphic control extension can hold, in centiseconds (GIF89a §23). */
const MAX_DELAY_CS = 65_535;

/** Largest repeat count of the loop extension; 0 is for ever. */
const MAX_REPEATS = 65_535;

/**
 * Writes delays and loop count of an animation into an encoded GIF, whose encoder was given others:
 * sharp takes no delay over 65 535 ms, though the format holds ten times that, and no more than
 * 65 535 plays, though it holds one more.
 *
 * @param encoded a GIF with a graphic control extension before each frame, and a loop extension
 *   unless it plays once
 * @param animation delays in milliseconds, one per frame, rounded to centiseconds (`roundDelays`);
 *   `plays` in all, 0 for ever
 * @returns a copy of the GIF
 * @throws Error if the GIF has not exactly one frame per delay
 */
export function restoreGifTiming(encoded: Uint8Array, { delaysMs, plays }: Animation): Buffer {
  const gif = Buffer.from(encoded);
  const delaysCs = roundDelays(delaysMs, CENTISECOND_MS, MAX_DELAY_CS);
  let controls = 0;
  const end = walkGifBlocks(gif, {
    onExtension: (label, start) => {
      if (label === gifLabel.graphicControl) {
        gif.writeUInt16LE(delaysCs[controls] ?? 0, start + 4);
        controls += 1;
      } else if (label === gifLabel.application && gif.readUInt8(start + 15) === 1) {
        // NETSCAPE2.0: 11 bytes of name, then a sub-block of 1 and the number of repeats.
        const repeats = plays === 0 ? 0 : Math.min(MAX_REPEATS, plays - 1);
        gif.writeUInt16LE(repeats, start + 16);
      }
    },
  });
  if (end.kind !== 'trailer') {
    throw new Error(
      `Expected a GIF with a trailer but received ${end.kind} at byte ${end.position}`,
    );
  }
  if (controls !== delaysMs.length) {
    throw new Error(`Expected ${delaysMs.length} frames in the GIF but received ${controls}`);
  }
  return gif;
}
