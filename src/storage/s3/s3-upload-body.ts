/** Bodies of uploads, as they are sent: as they come, or in parts. */

/**
 * One part of an upload; what is not larger is sent at once. S3 takes 10 000 parts of 5 MiB and more
 * (Amazon S3 User Guide, "Amazon S3 multipart upload limits"), so that 78 GiB fit.
 */
export const PART_BYTES = 8 * 1024 * 1024;

/** A piece of an upload that is sent by one request; its bytes are overwritten by the next one. */
export interface Part {
  readonly bytes: Buffer;
  readonly isLast: boolean;
}

/** Fills one part after the other, in the same memory; the last one may be shorter, and is empty only if it is alone. */
export async function* fillParts(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Part> {
  const buffer = Buffer.allocUnsafeSlow(PART_BYTES);
  let filled = 0;
  for await (const chunk of chunks) {
    for (let taken = 0; taken < chunk.length; ) {
      // Only now is it known that this one is not the last.
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
