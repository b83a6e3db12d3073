import { MAX_CODE_BITS } from './gif-blocks.ts';

/** Indices a pixel can have. */
const INDICES = 256;

/**
 * Finds a colour index that does not occur in LZW data, without unpacking them: the codes of longer
 * strings only repeat what the decoder has seen, so an index occurs if its own code does.
 *
 * @param gif a GIF whose sub-blocks have been found to end
 * @param data offset of the byte with the bits of a root code; the sub-blocks follow
 * @returns `undefined` where all 256 indices occur
 */
export function findUnusedIndex(gif: Uint8Array, data: number): number | undefined {
  const rootBits = gif[data] ?? 0;
  // Few colours: data cannot tell of an index that has no root code.
  if (rootBits < 8) return INDICES - 1;
  const clear = 1 << rootBits;
  const used = new Uint8Array(INDICES);
  let codeBits = rootBits + 1;
  let entries = clear + 1; // one less than there are: the first code after a clear adds none
  let pool = 0;
  let poolBits = 0;
  let blockEnd = data + 1;
  for (let at = data + 1; ; at += 1) {
    if (at === blockEnd) {
      const size = gif[at] ?? 0;
      if (size === 0) break;
      blockEnd += 1 + size;
      continue;
    }
    pool |= (gif[at] ?? 0) << poolBits;
    poolBits += 8;
    if (poolBits < codeBits) continue;
    const code = pool & ((1 << codeBits) - 1);
    pool >>= codeBits;
    poolBits -= codeBits;
    if (code === clear + 1) break;
    if (code === clear) {
      codeBits = rootBits + 1;
      entries = clear + 1;
      continue;
    }
    if (code < clear) used[code % INDICES] = 1;
    entries += 1;
    if (entries === 1 << codeBits && codeBits < MAX_CODE_BITS) codeBits += 1;
  }
  const unused = used.indexOf(0);
  return unused < 0 ? undefined : unused;
}
