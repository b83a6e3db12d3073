import { buffer } from 'node:stream/consumers';
import { beforeEach, describe, expect, test } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import type { Source } from '../../../src/pipeline/ports.ts';
import type { OriginalWriter } from '../../support/directory-storage.ts';
import { openStream, signal } from '../../support/open-stream.ts';

export interface OriginalWriterFixture {
  readonly writer: OriginalWriter;
  readonly origin: Source;
  /** Lists all keys, and parts of unfinished uploads. */
  readonly list: () => Promise<readonly string[]>;
  /** Whether the test's server cannot remove parts of an upload, which the writer must report. */
  readonly keepsParts?: true;
  /** Whether the test's server ignores `If-None-Match`. */
  readonly ignoresConditions?: true;
}

const MEBIBYTE = 1024 * 1024;

const PARTS_ARE_KEPT = 'The upload has failed, and its parts could not be removed';

/** Returns bytes that reveal parts in the wrong order. */
function numbered(sizeBytes: number): Buffer {
  const bytes = Buffer.alloc(sizeBytes);
  for (let at = 0; at + 4 <= sizeBytes; at += 4) bytes.writeUInt32BE(at, at);
  return bytes;
}

async function* inChunks(bytes: Buffer, chunkBytes: number): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += chunkBytes) {
    yield bytes.subarray(start, start + chunkBytes);
  }
}

async function* failAfter(sizeBytes: number): AsyncGenerator<Uint8Array> {
  yield* inChunks(numbered(sizeBytes), MEBIBYTE);
  throw new Error('the disk is gone');
}

export function describeOriginalWriter(
  name: string,
  create: () => Promise<OriginalWriterFixture>,
): void {
  describe(`${name} meets the contract of a writer of originals:`, () => {
    let fixture: OriginalWriterFixture;
    beforeEach(async () => {
      fixture = await create();
    });

    const read = async (key: string): Promise<Buffer> =>
      buffer((await openStream(fixture.origin, key)).body);

    test.each([0, 1, 70_000, 8 * MEBIBYTE, 8 * MEBIBYTE + 1, 20 * MEBIBYTE + 3])(
      'an original of %i bytes replaces an earlier one, and is read as it was written',
      async (sizeBytes) => {
        const bytes = numbered(sizeBytes);
        const key = 'attachments/1/2/Größe ?&.bin';
        await fixture.writer.write(key, inChunks(Buffer.from('before'), 6), { signal });
        await fixture.writer.write(key, inChunks(bytes, 1_000_003), { signal });
        expect((await read(key)).equals(bytes)).toBe(true);
        expect(await fixture.list()).toEqual([key]);
      },
    );

    test.each([
      ['with a length', 3 * MEBIBYTE, true],
      ['of some bytes without a length', 3_000, false],
      ['of many bytes without a length', 9 * MEBIBYTE, false],
    ])(
      'a create-only upload %s does not replace an existing original',
      async (_, size, hasLength) => {
        const bytes = numbered(size);
        const write = () =>
          fixture.writer.write('emojis/2', inChunks(bytes, 1_000_003), {
            signal,
            isNew: true,
            contentType: 'image/png',
            sizeBytes: hasLength ? size : undefined,
          });
        expect(await fixture.writer.has('emojis/2', signal)).toBe(false);
        const etag = await write();
        const { etag: read, body } = await openStream(fixture.origin, 'emojis/2');
        expect((await buffer(body)).equals(bytes)).toBe(true);
        expect(etag).toBe(read);
        expect(await fixture.writer.has('emojis/2', signal)).toBe(true);
        const isSeen = fixture.ignoresConditions !== true;
        if (isSeen) await expect(write()).rejects.toEqual(new MediaError('MEDIA_EXISTS'));
        expect(await fixture.list()).toEqual(['emojis/2']);
      },
    );

    test.each([true, false])(
      'one of several concurrent create-only uploads is stored; with their lengths: %s',
      async (hasLength) => {
        const write = (size: number) =>
          fixture.writer.write('emojis/4', inChunks(numbered(size), MEBIBYTE), {
            signal,
            isNew: true,
            sizeBytes: hasLength ? size : undefined,
          });
        const sizes = [9 * MEBIBYTE, 10 * MEBIBYTE];
        const written = await Promise.allSettled(sizes.map(write));
        expect(written.map(({ status }) => status)).toContain('fulfilled');
        expect(await fixture.list()).toEqual(['emojis/4']);
        const size = (await read('emojis/4')).length;
        expect(written[sizes.indexOf(size)]?.status).toBe('fulfilled');
      },
    );

    test('a failed upload with a Content-Length leaves no original', async () => {
      const options = { signal, sizeBytes: 4 * MEBIBYTE };
      const written = fixture.writer.write('emojis/3', failAfter(2 * MEBIBYTE), options);
      await expect(written).rejects.toThrow('the disk is gone');
      expect(await fixture.list()).toEqual([]);
    });

    test.each([
      ['at once', 0],
      ['after many megabytes', 12 * MEBIBYTE],
    ])('an upload that fails %s leaves only the earlier original', async (_, sizeBytes) => {
      await fixture.writer.write('emojis/1', inChunks(Buffer.from('before'), 6), { signal });
      const cause = new Error('the disk is gone');
      const keepsParts = fixture.keepsParts === true && sizeBytes > 0;
      const failure = keepsParts ? new Error(PARTS_ARE_KEPT, { cause }) : cause;
      const written = fixture.writer.write('emojis/1', failAfter(sizeBytes), { signal });
      await expect(written).rejects.toEqual(failure);
      expect((await read('emojis/1')).toString()).toBe('before');
      expect(await fixture.list()).toEqual(['emojis/1']);
    });

    test('an upload that is aborted leaves nothing', async () => {
      const stop = new AbortController();
      const stopped = (async function* () {
        yield* inChunks(numbered(12 * MEBIBYTE), MEBIBYTE);
        stop.abort(new Error('stopped'));
        yield* inChunks(numbered(12 * MEBIBYTE), MEBIBYTE);
      })();
      await expect(
        fixture.writer.write('emojis/1', stopped, { signal: stop.signal }),
      ).rejects.toThrow(fixture.keepsParts === true ? PARTS_ARE_KEPT : 'stopped');
      await expect(read('emojis/1')).rejects.toEqual(new MediaError('UNKNOWN_MEDIA'));
      expect(await fixture.list()).toEqual([]);
    });

    test.each([
      ['with a length', 300_000, true],
      ['of many bytes without a length', 9 * MEBIBYTE, false],
    ])('an upload %s replaces only the version of its ifMatch', async (_, size, hasLength) => {
      const options = { signal, contentType: 'image/x-test' };
      const tag = await fixture.writer.write('emojis/5', inChunks(numbered(8), 8), options);
      const replaceOnce = (ifMatch: string) =>
        fixture.writer.write('emojis/5', inChunks(numbered(size), MEBIBYTE), {
          signal,
          ifMatch,
          sizeBytes: hasLength ? size : undefined,
        });
      // The first attempt may find that the server compares tags without quotes.
      const replace = (ifMatch: string) =>
        replaceOnce(ifMatch).catch((error: MediaError) => {
          if (error.code !== 'OVERLOADED') throw error;
          return replaceOnce(ifMatch);
        });
      const next = await replace(tag);
      expect(next).not.toBe(tag);
      expect((await read('emojis/5')).equals(numbered(size))).toBe(true);
      const refused = { name: 'MediaError', code: 'PRECONDITION_FAILED' };
      await expect(replace(tag)).rejects.toMatchObject(refused);
      const { etag, body } = await openStream(fixture.origin, 'emojis/5');
      body.destroy();
      expect(etag).toBe(next);
      const missing = { signal, ifMatch: tag, sizeBytes: 8 };
      const written = fixture.writer.write('emojis/6', inChunks(numbered(8), 8), missing);
      await expect(written).rejects.toMatchObject(refused);
      expect(await fixture.list()).toEqual(['emojis/5']);
    });

    test('an upload whose ifMatch becomes stale does not replace the newer original', async () => {
      const write = (text: string) =>
        fixture.writer.write('emojis/7', inChunks(Buffer.from(text), 64), { signal });
      const ifMatch = await write('before');
      const slow = (async function* () {
        yield Buffer.from('mine,');
        await write('of another writer');
        yield Buffer.from('mine.');
      })();
      const written = fixture.writer.write('emojis/7', slow, { signal, ifMatch, sizeBytes: 10 });
      // Without conditional writes, the server keeps the last upload.
      if (fixture.ignoresConditions === true) return void (await written);
      await expect(written).rejects.toMatchObject({ code: 'PRECONDITION_FAILED' });
      expect(String(await read('emojis/7'))).toBe('of another writer');
      expect(await fixture.list()).toEqual(['emojis/7']);
    });

    test.each(['../outside', 'emojis/../../outside', 'emojis//1', 'emojis/.'])(
      'a key with dots or empty segments is rejected: %s',
      async (key) => {
        const written = fixture.writer.write(key, inChunks(Buffer.from('x'), 1), { signal });
        await expect(written).rejects.toThrow(key);
        expect(await fixture.list()).toEqual([]);
      },
    );
  });
}
