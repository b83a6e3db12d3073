/**
 * Cuts bytes that come in any pieces into pieces of one size; the last one may be shorter, and none is
 * empty. A piece is the reader's own: it is not written to again.
 */
export async function* gatherPieces(
  chunks: AsyncIterable<Uint8Array>,
  pieceBytes: number,
): AsyncGenerator<Buffer, void> {
  let piece = Buffer.allocUnsafe(pieceBytes);
  let filled = 0;
  for await (const chunk of chunks) {
    for (let start = 0; start < chunk.length; ) {
      const taken = chunk.subarray(start, start + pieceBytes - filled);
      piece.set(taken, filled);
      filled += taken.length;
      start += taken.length;
      if (filled < pieceBytes) continue;
      yield piece;
      piece = Buffer.allocUnsafe(pieceBytes);
      filled = 0;
    }
  }
  if (filled > 0) yield piece.subarray(0, filled);
}
