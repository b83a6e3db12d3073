const EXTENSION = 0x21;
const IMAGE_DESCRIPTOR = 0x2c;
const TRAILER = 0x3b;
const GRAPHIC_CONTROL = 0xf9;
const HEADER_BYTES = 13;

/** Longest delay a graphic control extension can hold, in centiseconds (GIF89a §23). */
const MAX_DELAY_CS = 65_535;

/**
 * Writes the exact delays of an animation into an encoded GIF, whose encoder was given a constant
 * one: sharp takes no delay over 65 535 ms, though the format holds ten times that.
 *
 * A GIF counts in centiseconds; what is lost by rounding a delay is made up for in the next, so
 * that the animation as a whole keeps its length.
 *
 * @param encoded a GIF with a graphic control extension before each frame
 * @param delaysMs one delay per frame, in milliseconds
 * @returns a copy of the GIF
 * @throws Error if the GIF has not exactly one frame per delay
 */
export function restoreGifDelays(encoded: Uint8Array, delaysMs: readonly number[]): Buffer {
  const gif = Buffer.from(encoded);
  const delaysCs = toCentiseconds(delaysMs);
  let controls = 0;
  let position = HEADER_BYTES + colourTableBytes(gif.readUInt8(10));
  while (gif.readUInt8(position) !== TRAILER) {
    const introducer = gif.readUInt8(position);
    if (introducer === EXTENSION) {
      if (gif.readUInt8(position + 1) === GRAPHIC_CONTROL) {
        gif.writeUInt16LE(delaysCs[controls] ?? 0, position + 4);
        controls += 1;
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

function toCentiseconds(delaysMs: readonly number[]): number[] {
  let owedMs = 0;
  return delaysMs.map((delayMs) => {
    const delayCs = Math.min(MAX_DELAY_CS, Math.max(0, Math.round((delayMs + owedMs) / 10)));
    // Only what rounding took is owed; what the format cannot hold at all is gone.
    owedMs = delayCs === MAX_DELAY_CS ? 0 : delayMs + owedMs - delayCs * 10;
    return delayCs;
  });
}

/** Bytes of the colour table that a packed field announces (GIF89a §18, §20). */
function colourTableBytes(packed: number): number {
  return (packed & 0x80) === 0 ? 0 : 3 * 2 ** ((packed & 0x07) + 1);
}

function skipSubBlocks(gif: Buffer, start: number): number {
  let position = start;
  for (let length = gif.readUInt8(position); length > 0; length = gif.readUInt8(position)) {
    position += 1 + length;
  }
  return position + 1;
}
