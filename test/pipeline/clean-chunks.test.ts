import { describe, expect, test } from 'vitest';
import {
  createMetadataCleaner,
  type MetadataCleaner,
  MetadataRemovalError,
} from '../../src/formats/metadata-removal/cleaner.ts';
import { cleanChunks } from '../../src/pipeline/uploads/metadata-removal.ts';
import { OWNER, photo } from '../support/uploads/photos.ts';

function createSource(bytes: Buffer, chunkBytes: number) {
  const source = { requested: 0, isClosed: false };
  const chunks = (async function* () {
    try {
      for (let start = 0; start < bytes.length; start += chunkBytes) {
        source.requested += 1;
        yield bytes.subarray(start, start + chunkBytes);
      }
    } finally {
      source.isClosed = true;
    }
  })();
  return { source, chunks };
}

const cleanerOf = (bytes: Uint8Array): MetadataCleaner =>
  createMetadataCleaner(bytes) ?? expect.fail('no cleaner');

describe('cleanChunks', () => {
  test.each([1, 7, 1_000, 65_536])('cleans chunks of %i bytes', async (chunkBytes) => {
    const { chunks } = createSource(photo, chunkBytes);
    const cleaned: Uint8Array[] = [];
    for await (const chunk of cleanChunks(chunks, cleanerOf(photo))) {
      expect(chunk.length).toBeGreaterThan(0);
      cleaned.push(chunk);
    }
    const bytes = Buffer.concat(cleaned);
    expect([bytes.length, bytes.includes(OWNER)]).toEqual([photo.length, false]);
  });

  test('reads its source no faster than it is read, and closes the source when its reader stops', async () => {
    const { source, chunks } = createSource(photo, 2_048);
    const cleaned = cleanChunks(chunks, cleanerOf(photo));
    let bytes = 0;
    for (let count = 0; count < 4; count += 1) bytes += (await cleaned.next()).value?.length ?? 0;
    // 64 KiB in the cleaner, and the retained chunk.
    expect(source.requested * 2_048 - bytes).toBeLessThanOrEqual(64 * 1024 + 2 * 2_048);
    expect(source.requested * 2_048).toBeLessThan(photo.length);
    await cleaned.return(undefined);
    expect(source.isClosed).toBe(true);
  });

  test('passes the last chunk only once the cleaner has accepted the file', async () => {
    const passThrough: MetadataCleaner = {
      write: (chunk) => [chunk, new Uint8Array()],
      end: () => {
        throw new MetadataRemovalError('The file is damaged.');
      },
      hasRemoved: true,
    };
    const { chunks } = createSource(Buffer.from('abcdef'), 2);
    const passed: string[] = [];
    const reading = (async () => {
      for await (const chunk of cleanChunks(chunks, passThrough)) passed.push(String(chunk));
    })();
    await expect(reading).rejects.toMatchObject({
      code: 'UNSUPPORTED_MEDIA_TYPE',
      message: 'The metadata cannot be removed. The file is damaged.',
    });
    expect(passed).toEqual(['ab', 'cd']);
  });

  test('fails if the cleaner changes the length', async () => {
    const lossy: MetadataCleaner = {
      write: (chunk) => [chunk.subarray(1)],
      end: () => [],
      hasRemoved: true,
    };
    const { chunks } = createSource(Buffer.from('abcdef'), 3);
    const cleaned = cleanChunks(chunks, lossy);
    expect(String((await cleaned.next()).value)).toBe('bc');
    await expect(cleaned.next()).rejects.toMatchObject({ code: 'INTERNAL_ERROR' });
  });
});
