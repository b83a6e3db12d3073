import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import type { Source } from '../../../src/pipeline/ports.ts';
import { openStream } from '../../support/open-stream.ts';

/** An origin under test, with a way to fill it. */
export interface OriginFixture {
  readonly origin: Source;
  readonly put: (key: string, bytes: Uint8Array) => Promise<void>;
}

const signal = new AbortController().signal;
const bytes = (content: string): Uint8Array => Buffer.from(content);

/** What every origin must do, whatever is behind it. */
export function describeOrigin(name: string, create: () => Promise<OriginFixture>): void {
  describe(`${name} keeps the contract of an origin:`, () => {
    let fixture: OriginFixture;
    beforeEach(async () => {
      fixture = await create();
    });

    const readText = async (key: string, range?: { first: number; last: number | undefined }) => {
      const object = await openStream(fixture.origin, key, { signal, ...(range && { range }) });
      return text(object.body);
    };

    test('an object comes with its size, an identity and a date', async () => {
      await fixture.put('avatars/1/ab12', bytes('original'));
      const object = await openStream(fixture.origin, 'avatars/1/ab12', { signal });
      expect(object.sizeBytes).toBe(8);
      expect(object.etag).toMatch(/^[^"\s]+$/);
      expect(object.lastModified).toBeInstanceOf(Date);
      expect(await text(object.body)).toBe('original');
    });

    test('a modification date in the future is left out', async () => {
      await fixture.put('emojis/1', bytes('one'));
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 5 * 60_000 });
      onTestFinished(() => {
        vi.useRealTimers();
      });
      const object = await openStream(fixture.origin, 'emojis/1', { signal });
      expect(object.lastModified).toBeUndefined();
      expect(await text(object.body)).toBe('one');
    });

    test('a part of a replaced object is refused, or told apart by its ETag', async () => {
      await fixture.put('emojis/1', bytes('one'));
      const { etag: ifMatch, body } = await openStream(fixture.origin, 'emojis/1', { signal });
      body.destroy();
      if (ifMatch === undefined) expect.fail();
      const range = { first: 1, last: 2 };
      const same = await openStream(fixture.origin, 'emojis/1', { signal, range, ifMatch });
      expect([same.etag, await text(same.body)]).toEqual([ifMatch, 'ne']);
      await fixture.put('emojis/1', bytes('other'));
      try {
        const other = await openStream(fixture.origin, 'emojis/1', { signal, range, ifMatch });
        other.body.destroy();
        expect(other.etag).not.toBe(ifMatch);
      } catch (error) {
        expect(error).toMatchObject({ code: 'ORIGIN_ERROR', cause: { name: 'ReplacedMeanwhile' } });
      }
    });

    test('the identity of an object changes exactly when its bytes change', async () => {
      await fixture.put('emojis/1', bytes('one'));
      const etag = async () => {
        const object = await openStream(fixture.origin, 'emojis/1', { signal });
        object.body.destroy();
        return object.etag;
      };
      const before = await etag();
      expect(await etag()).toBe(before);
      await fixture.put('emojis/1', bytes('two!'));
      expect(await etag()).not.toBe(before);
    });

    test.each([
      { sizeBytes: 0 },
      { sizeBytes: 10 },
      { sizeBytes: 3_000_001 }, // more than any buffer
      { sizeBytes: 10, range: { first: 0, last: 0 }, expectedBytes: 1 },
      { sizeBytes: 10, range: { first: 2, last: 4 }, expectedBytes: 3 },
      { sizeBytes: 10, range: { first: 7, last: undefined }, expectedBytes: 3 },
      { sizeBytes: 10, range: { first: 7, last: 1_000 }, expectedBytes: 3 },
      { sizeBytes: 10, range: { first: 9, last: 9 }, expectedBytes: 1 },
      { sizeBytes: 100_000, range: { first: 2, last: 70_000 }, expectedBytes: 69_999 },
    ])('streamed and read into memory, bytes are those asked for: %o', async (row) => {
      const { sizeBytes, range, expectedBytes = sizeBytes } = row;
      const content = Buffer.alloc(sizeBytes, 'abcdefg');
      const key = 'attachments/1/2/held';
      await fixture.put(key, content);
      const first = range?.first ?? 0;
      const part = range && { first, last: first + expectedBytes - 1 };
      for (const isHeld of [false, true]) {
        const { body, ...state } = await fixture.origin.open(key, { signal, range, isHeld });
        expect(state).toMatchObject({ sizeBytes, part });
        const read = body instanceof Readable ? await buffer(body) : Buffer.from(body ?? []);
        expect(read.equals(content.subarray(first, first + expectedBytes))).toBe(true);
      }
    });

    test('a range beyond the end is RANGE_NOT_SATISFIABLE', async () => {
      await fixture.put('attachments/1/2/digits', bytes('0123456789'));
      await expect(
        readText('attachments/1/2/digits', { first: 10, last: 12 }),
      ).rejects.toMatchObject({ code: 'RANGE_NOT_SATISFIABLE' });
    });

    test.each([
      'avatars/1/nothing',
      'nothing/at/all',
      'avatars', // a folder, or a prefix of other keys
      'avatars/1',
      'avatars/1/ab12/below-an-object',
      `attachments/1/2/${'x'.repeat(255)}`,
      `attachments/1/2/${'ü'.repeat(200)}`, // longer than file systems take
    ])('the missing or invalid key %s is UNKNOWN_MEDIA', async (key) => {
      await fixture.put('avatars/1/ab12', bytes('original'));
      const error: unknown = await openStream(fixture.origin, key, { signal }).catch(
        (reason) => reason,
      );
      expect(error).toBeInstanceOf(MediaError);
      expect(error).toMatchObject({ code: 'UNKNOWN_MEDIA' });
    });

    test.each([
      'my photo é.png',
      'صورة العائلة.jpg',
      '🎉 party.png',
      '100%.png',
      '%2e%2e',
      'a#b?c&d=e+f.png',
      'quote\'"`$(x).png',
      '...',
      '-rf',
    ])('the file name %s finds its object unchanged', async (filename) => {
      await fixture.put(`attachments/1/2/${filename}`, bytes(filename));
      expect(await readText(`attachments/1/2/${filename}`)).toBe(filename);
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
      const object = await openStream(fixture.origin, 'attachments/1/2/large.bin', { signal });
      object.body.destroy();
      await new Promise((resolve) => object.body.once('close', resolve));
      expect(object.body.readableEnded).toBe(false);
    });
  });
}
