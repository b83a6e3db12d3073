import { expect } from 'vitest';
import { createMetadataCleaner } from '../../../src/formats/metadata-removal/cleaner.ts';

export interface Cleaned {
  readonly bytes: Buffer;
  readonly hasRemoved: boolean;
  /** Maximum input bytes that were not returned yet. */
  readonly maxBuffered: number;
}

const PREFIX_BYTES = 4096;

/** Cleans a file in chunks of these sizes, in turn; by default in one. */
export function clean(file: Uint8Array, chunkSizes: readonly number[] = [file.length]): Cleaned {
  const cleaner =
    createMetadataCleaner(file.subarray(0, PREFIX_BYTES)) ?? expect.fail('format not supported');
  const bytes = Buffer.alloc(file.length);
  let written = 0;
  let maxBuffered = 0;
  const put = (pieces: readonly Uint8Array[]): void => {
    for (const piece of pieces) {
      bytes.set(piece, written);
      written += piece.length;
    }
  };
  let at = 0;
  for (let turn = 0; at < file.length; turn += 1) {
    // A caller may reuse the memory of its chunks.
    const chunk = Uint8Array.from(
      file.subarray(at, at + (chunkSizes[turn % chunkSizes.length] ?? 1)),
    );
    put(cleaner.write(chunk));
    chunk.fill(0xaa);
    at += chunk.length;
    maxBuffered = Math.max(maxBuffered, at - written);
  }
  put(cleaner.end());
  expect(written).toBe(file.length);
  const { hasRemoved } = cleaner;
  return { bytes, hasRemoved, maxBuffered };
}

/** Cleans a file in one chunk. Expects the same for other chunks, and nothing more to remove. */
export function cleanInAnyChunks(file: Uint8Array): Buffer {
  const { bytes, hasRemoved } = clean(file);
  expect(hasRemoved).toBe(!bytes.equals(file));
  for (const chunkSizes of [[1], [7, 1, 4096, 13], [65_536]]) {
    const { bytes: same, maxBuffered } = clean(file, chunkSizes);
    expect(same.equals(bytes)).toBe(true);
    expect(maxBuffered).toBeLessThanOrEqual(64 * 1024);
  }
  const again = clean(bytes);
  expect(again.hasRemoved).toBe(false);
  expect(again.bytes.equals(bytes)).toBe(true);
  return bytes;
}

export const SECRET = 'S3CRET-48.8584N-2.2945E';

/** Expects a file to contain the secret before it is cleaned, and not after. */
export function expectNoSecret(file: Buffer, cleaned: Buffer): void {
  expect(file.includes(SECRET)).toBe(true);
  expect(cleaned.includes(SECRET)).toBe(false);
}
