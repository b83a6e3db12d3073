import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import type { ByteRange, Source } from '../../../src/pipeline/ports.ts';
import { openStream, signal } from '../../support/open-stream.ts';

/** File names that are difficult in paths, URLs and XML. */
export const hardNames: readonly string[] = [
  'my photo é.png',
  'e\u0301.png',
  'صورة العائلة.jpg',
  '🎉 party.png',
  '100%.png',
  '%2e%2e',
  'a#b?c&d=e+f.png',
  'quote\'"`$(x)<&>.png',
  '...',
  '..name',
  '.hidden',
  ' ',
  '~',
  '-rf',
];

export interface OriginFixture {
  readonly origin: Source;
  readonly put: (key: string, bytes: Uint8Array) => Promise<void>;
}

const bytes = (content: string): Uint8Array => Buffer.from(content);

export function describeOrigin(name: string, create: () => Promise<OriginFixture>): void {
  describe(`${name} meets the contract of an origin:`, () => {
    let fixture: OriginFixture;
    beforeEach(async () => {
      fixture = await create();
    });

    test('a modification date in the future is omitted', async () => {
      await fixture.put('emojis/1', bytes('one'));
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 5 * 60_000 });
      onTestFinished(() => void vi.useRealTimers());
      const object = await openStream(fixture.origin, 'emojis/1');
      expect(object.lastModified).toBeUndefined();
      expect(await text(object.body)).toBe('one');
    });

    test('a range of a replaced object is rejected, or has another ETag', async () => {
      await fixture.put('emojis/1', bytes('one'));
      const { etag: ifMatch, body } = await openStream(fixture.origin, 'emojis/1');
      body.destroy();
      if (ifMatch === undefined) expect.fail();
      const range = { first: 1, last: 2 };
      const same = await openStream(fixture.origin, 'emojis/1', { range, ifMatch });
      expect([same.etag, await text(same.body)]).toEqual([ifMatch, 'ne']);
      await fixture.put('emojis/1', bytes('other'));
      const now = await openStream(fixture.origin, 'emojis/1');
      expect([now.etag === ifMatch, await text(now.body)]).toEqual([false, 'other']);
      try {
        const other = await openStream(fixture.origin, 'emojis/1', { range, ifMatch });
        other.body.destroy();
        expect(other.etag).toBe(now.etag);
      } catch (error) {
        expect(error).toMatchObject({ code: 'ORIGIN_ERROR', cause: { name: 'StateMismatch' } });
      }
    });

    test.each<[sizeBytes: number, range?: ByteRange]>([
      [0],
      [10],
      [3_000_001], // more than any buffer
      [10, { first: 0, last: 0 }],
      [10, { first: 2, last: 4 }],
      [10, { first: 7, last: undefined }],
      [10, { first: 7, last: 1_000 }],
      [10, { first: 9, last: 9 }],
      [100_000, { first: 2, last: 70_000 }],
    ])(
      'of %i bytes, the requested range is streamed or read into memory: %o',
      async (sizeBytes, range) => {
        const content = Buffer.alloc(sizeBytes, 'abcdefg');
        await fixture.put('avatars/1/ab12', content);
        const { first, last = Infinity } = range ?? { first: 0 };
        const expected = content.subarray(first, last + 1);
        const part = range && { first, last: first + expected.length - 1 };
        for (const isBuffered of [false, true]) {
          const options = { signal, range, isBuffered };
          const { body, ...state } = await fixture.origin.open('avatars/1/ab12', options);
          const etag = expect.stringMatching(/^[^"\s]+$/);
          expect(state).toMatchObject({ sizeBytes, part, etag, lastModified: expect.any(Date) });
          const read = body instanceof Readable ? await buffer(body) : Buffer.from(body ?? []);
          expect(read.equals(expected)).toBe(true);
        }
      },
    );

    test('a range past the end is RANGE_NOT_SATISFIABLE', async () => {
      await fixture.put('emojis/1', bytes('0123456789'));
      const beyond = { signal, range: { first: 10, last: 12 } };
      const code = 'RANGE_NOT_SATISFIABLE';
      await expect(openStream(fixture.origin, 'emojis/1', beyond)).rejects.toMatchObject({ code });
    });

    test.each([
      'avatars/1/nothing',
      'nothing/at/all',
      'avatars', // a directory, or a prefix of other keys
      'avatars/1',
      'avatars/1/ab12/below-an-object',
      `attachments/1/2/${'x'.repeat(255)}`,
      `attachments/1/2/${'ü'.repeat(200)}`, // longer than file systems accept
    ])('the missing or invalid key %s is UNKNOWN_MEDIA', async (key) => {
      await fixture.put('avatars/1/ab12', bytes('original'));
      await expect(openStream(fixture.origin, key)).rejects.toEqual(
        new MediaError('UNKNOWN_MEDIA'),
      );
    });

    test.each(hardNames)('the file name %j finds its object unchanged', async (filename) => {
      await fixture.put(`attachments/1/2/${filename}`, bytes(filename));
      const object = await openStream(fixture.origin, `attachments/1/2/${filename}`);
      expect(await text(object.body)).toBe(filename);
    });

    test('a read with an aborted signal is rejected', async () => {
      await fixture.put('emojis/1', bytes('one'));
      const aborted = AbortSignal.abort(new Error('gone'));
      await expect(openStream(fixture.origin, 'emojis/1', { signal: aborted })).rejects.toThrow(
        'gone',
      );
    });

    test('a body that is destroyed before its end raises no error', async () => {
      await fixture.put('attachments/1/2/large.bin', Buffer.alloc(3_000_000));
      const object = await openStream(fixture.origin, 'attachments/1/2/large.bin');
      object.body.destroy();
      await new Promise((resolve) => object.body.once('close', resolve));
      expect(object.body.readableEnded).toBe(false);
    });
  });
}
