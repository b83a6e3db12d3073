/** Largest edge of a VP8L image in px: RFC 9649 §3.4 stores edge − 1 in 14 bits. */
const MAX_EDGE_PX = 2 ** 14;

/**
 * Creates the VP8L bitstream of an image whose every pixel is transparent black: 8 bytes, whatever
 * its size (payload of a `VP8L` chunk, RFC 9649 §3).
 *
 * Byte by byte: the signature 0x2f; 32 bits of header, low bits first: width − 1 (14 bits),
 * height − 1 (14), alpha is used (1), version 0 (3); then 24 bits: no transform, no colour cache, no
 * meta prefix codes (a zero bit each) and five prefix codes of the bits 1 0 0 0, that is: simple,
 * one symbol, of one bit, which is 0. A code with one symbol takes no bit per pixel, so no
 * pixel data follows.
 *
 * Both edges are integers of 1 to 16384 px; throws a plain Error for any other.
 */
export function createTransparentVp8l(widthPx: number, heightPx: number): Buffer {
  for (const edgePx of [widthPx, heightPx]) {
    if (!Number.isInteger(edgePx) || edgePx < 1 || edgePx > MAX_EDGE_PX) {
      throw new Error(`Expected 1 to ${MAX_EDGE_PX} px for a VP8L edge but received ${edgePx}`);
    }
  }
  const bitstream = Buffer.from([0x2f, 0, 0, 0, 0, 0x88, 0x88, 0x08]);
  bitstream.writeUInt32LE((widthPx - 1) | ((heightPx - 1) << 14) | (1 << 28), 1);
  return bitstream;
}
