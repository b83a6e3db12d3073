/** Parts of an upload's body. */

/**
 * Size of one part of an upload; smaller uploads are sent at once. S3 accepts 10 000 parts of 5 MiB and more (Amazon S3
 * User Guide, "Amazon S3 multipart upload limits"), so that 78 GiB fit.
 */
export const PART_BYTES = 8 * 1024 * 1024;

/** A piece of an upload that is sent by one request; the next piece overwrites its bytes. */
export interface Part {
  readonly bytes: Buffer;
  readonly isLast: boolean;
}

/** Fills one part after the other, in the same memory; the last may be shorter, and is empty only if alone. */
export async function* fillParts(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Part> {
  const buffer = Buffer.allocUnsafeSlow(PART_BYTES);
  let filled = 0;
  for await (const chunk of chunks) {
    for (let taken = 0; taken < chunk.length; ) {
      // Only now is it known that this part is not the last.
      if (filled === PART_BYTES) {
        yield { bytes: buffer, isLast: false };
        filled = 0;
      }
      const count = Math.min(PART_BYTES - filled, chunk.length - taken);
      buffer.set(chunk.subarray(taken, taken + count), filled);
      filled += count;
      taken += count;
    }
  }
  yield { bytes: buffer.subarray(0, filled), isLast: true };
}
