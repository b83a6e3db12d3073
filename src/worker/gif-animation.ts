import { colourTableBytes } from '../media/header/gif-header.ts';
import type { Animation } from '../media/header/image-facts.ts';

const EXTENSION = 0x21;
const IMAGE_DESCRIPTOR = 0x2c;
const TRAILER = 0x3b;
const GRAPHIC_CONTROL = 0xf9;
const APPLICATION = 0xff;
const HEADER_BYTES = 13;

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
 * @param animation delays in milliseconds, one per frame, each rounded to the nearest centisecond;
 *   `plays` in all, 0 for ever
 * @returns a copy of the GIF
 * @throws Error if the GIF has not exactly one frame per delay
 */
export function restoreGifTiming(encoded: Uint8Array, { delaysMs, plays }: Animation): Buffer {
  const gif = Buffer.from(encoded);
  let controls = 0;
  let position = HEADER_BYTES + colourTableBytes(gif.readUInt8(10));
  while (gif.readUInt8(position) !== TRAILER) {
    const introducer = gif.readUInt8(position);
    if (introducer === EXTENSION) {
      const label = gif.readUInt8(position + 1);
      if (label === GRAPHIC_CONTROL) {
        gif.writeUInt16LE(toCentiseconds(delaysMs[controls] ?? 0), position + 4);
        controls += 1;
      } else if (label === APPLICATION && gif.readUInt8(position + 15) === 1) {
        // NETSCAPE2.0: 11 bytes of name, then a sub-block of 1 and the number of repeats.
        const repeats = plays === 0 ? 0 : Math.min(MAX_REPEATS, plays - 1);
        gif.writeUInt16LE(repeats, position + 16);
      }
      position = skipSubBlocks(gif, position + 2);
    } else if (introducer === IMAGE_DESCRIPTOR) {
      // Descriptor, local colour table, then one byte of LZW code size before the data.
      position = skipSubBlocks(gif, position + 11 + colourTableBytes(gif.readUInt8(position + 9)));
    } else {
      throw new Error(`Expected a GIF block at byte ${position} but received ${introducer}`);
    }
  }
  if (controls !== delaysMs.length) {
    throw new Error(`Expected ${delaysMs.length} frames in the GIF but received ${controls}`);
  }
  return gif;
}

function toCentiseconds(delayMs: number): number {
  return Math.min(MAX_DELAY_CS, Math.max(0, Math.round(delayMs / 10)));
}

function skipSubBlocks(gif: Buffer, start: number): number {
  let position = start;
  for (let length = gif.readUInt8(position); length > 0; length = gif.readUInt8(position)) {
    position += 1 + length;
  }
  return position + 1;
}
