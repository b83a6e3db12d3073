import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ResultAddress } from '../../../src/contract/result-key.ts';
import type { ResultStore, StoredResult } from '../../../src/pipeline/ports.ts';
import { signal } from '../../support/open-stream.ts';
import { storedPathPrefix } from '../../support/stored-path.ts';
import { hardNames } from './origin.contract.ts';

export const ignoreSize = (): void => undefined;

export function addressOf(change: Partial<ResultAddress> = {}): ResultAddress {
  const originKey = change.originKey ?? 'avatars/1/ab12';
  return {
    originKey,
    cacheKey: `${originKey}?width=64`,
    originalEtag: 'e1',
    release: 'r1',
    ...change,
  };
}

export function resultOf(text: string): StoredResult {
  return { body: Buffer.from(text), mimeType: 'image/webp' };
}

/** Returns the text of a rendering; `undefined` if it is missing. */
export async function readText(store: ResultStore, address: ResultAddress) {
  const result = await store.read(address, signal, ignoreSize);
  return result && Buffer.from(result.body).toString();
}

export function describeResultStore(name: string, create: () => Promise<ResultStore>): void {
  describe(`${name} meets the contract of a result store:`, () => {
    let store: ResultStore;
    beforeEach(async () => {
      store = await create();
    });
    afterEach(() => store.close());

    const read = (address: ResultAddress) => readText(store, address);
    const writeText = (address: ResultAddress, text: string): Promise<void> =>
      store.write(address, resultOf(text));

    test('a rendering is read as it was written; only on a hit, its size is reported before the read', async () => {
      const body = Buffer.from(Array.from({ length: 70_000 }, (_, at) => (at * 31) & 0xff));
      await store.write(addressOf(), { body, mimeType: 'image/gif' });
      const sizes: number[] = [];
      const noteSize = (sizeBytes: number): void => void sizes.push(sizeBytes);
      expect(
        await store.read(addressOf({ cacheKey: 'another' }), signal, noteSize),
      ).toBeUndefined();
      expect(sizes).toEqual([]);
      const result = await store.read(addressOf(), signal, noteSize);
      expect(result?.mimeType).toBe('image/gif');
      expect(body.equals(result?.body ?? Buffer.of())).toBe(true);
      expect(sizes).toHaveLength(1);
      expect(sizes[0]).toBeGreaterThanOrEqual(body.length);
      expect(sizes[0]).toBeLessThan(body.length + 1_000);
    });

    test.each([
      { originKey: 'avatars/1/ab13' },
      { cacheKey: 'avatars/1/ab12?width=65' },
      { originalEtag: 'e2' },
      { release: 'r2' },
    ])('a rendering of another address is a miss: %o', async (change) => {
      await writeText(addressOf(), 'one');
      expect(await read(addressOf(change))).toBeUndefined();
      await writeText(addressOf(change), 'two');
      expect(await read(addressOf())).toBe('one');
      expect(await read(addressOf(change))).toBe('two');
    });

    test('many concurrent writes of one rendering leave a complete file, or no file', async () => {
      const texts = Array.from({ length: 20 }, (_, at) => `${at}`.repeat(1_000 + at));
      await Promise.all(texts.map((text) => writeText(addressOf(), text)));
      expect([...texts, undefined]).toContain(await read(addressOf()));
      await writeText(addressOf(), 'the last');
      expect(await read(addressOf())).toBe('the last');
    });

    test.each([
      ...hardNames,
      'con',
      'results',
      'incoming',
      '0123456789abcdef-0123456789abcdef',
      `${'x'.repeat(251)}.png`,
      `${'é'.repeat(127)}x`,
    ])('an original named %j has renderings like any other', async (filename) => {
      const address = addressOf({ originKey: `attachments/1/2/${filename}` });
      await writeText(address, filename);
      expect(await read(address)).toBe(filename);
      expect(await store.remove(`attachments/1/2/${filename}/`)).toBe(1);
      expect(await read(address)).toBeUndefined();
      await writeText(address, 'again');
      expect(await read(address)).toBe('again');
    });

    test('a rendering whose name the storage rejects is not stored, without an error', async () => {
      const address = addressOf({ originKey: `attachments/1/2/${'x'.repeat(1_100)}` });
      await writeText(address, 'a');
      expect([undefined, 'a']).toContain(await read(address));
      await writeText(addressOf(), 'still there');
      expect(await read(addressOf())).toBe('still there');
    });

    test.each(['../outside', 'avatars/../../outside', 'avatars/./1', 'avatars//1', '/etc'])(
      'the origin key %s is rejected',
      async (originKey) => {
        const address = addressOf({ originKey });
        await expect(store.write(address, resultOf('a'))).rejects.toThrow(Error);
        await expect(store.read(address, signal, ignoreSize)).rejects.toThrow(Error);
      },
    );

    describe('a purge', () => {
      const keys = ['avatars/1/ab', 'avatars/1/cd', 'avatars/12/ab', 'avatars/1', 'banners/1/ab'];
      const addresses = keys.flatMap((originKey) =>
        ['r1', 'r2'].map((release) => addressOf({ originKey, release })),
      );
      const left = async () => {
        const texts = await Promise.all(addresses.map(read));
        return keys.filter((key) => texts.includes(key));
      };
      beforeEach(async () => {
        for (const address of addresses) await writeText(address, address.originKey);
      });

      test.each([
        ['avatars/1/ab/', 2, ['avatars/1/cd', 'avatars/12/ab', 'avatars/1', 'banners/1/ab']],
        // Also contains renderings of the original `avatars/1`.
        ['avatars/1/', 6, ['avatars/12/ab', 'banners/1/ab']],
        ['avatars/1', 8, ['banners/1/ab']],
        ['avatars/1/a', 2, ['avatars/1/cd', 'avatars/12/ab', 'avatars/1', 'banners/1/ab']],
        ['avatars', 8, ['banners/1/ab']],
      ])('of %s removes %i renderings and leaves the others', async (prefix, count, rest) => {
        expect(await store.remove(prefix)).toBe(count);
        expect(await left()).toEqual(rest);
        expect(await store.remove(prefix)).toBe(0);
      });

      test('of one request removes its renderings of every release and ETag, and no other', async () => {
        const originKey = 'avatars/1/ab';
        const other = addressOf({ originKey, cacheKey: `${originKey}?width=128` });
        await writeText(other, 'other');
        const prefix = storedPathPrefix(originKey, addressOf({ originKey }).cacheKey);
        expect(await store.remove(prefix)).toBe(2);
        expect(await read(other)).toBe('other');
        expect(await left()).toEqual(keys.slice(1));
      });

      test('of a prefix that no path begins with removes nothing, or is rejected', async () => {
        const others = ['avatars/3/', 'vatars', 'avatars/1/ab/x/y', 'AVATARS/', 'a%', 'a*'];
        for (const prefix of [...others, `avatars/1/${'x'.repeat(300)}`])
          expect([prefix, await store.remove(prefix)]).toEqual([prefix, 0]);
        const broken = ['', '..', '../', '../x/', 'avatars/../avatars/1/', 'avatars/..', './'];
        for (const prefix of [...broken, '/', '//'])
          await expect(store.remove(prefix), prefix).rejects.toThrow(Error);
        expect(await left()).toEqual(keys);
      });
    });

    test('a read with an aborted signal is rejected', async () => {
      await writeText(addressOf(), 'a');
      const aborted = AbortSignal.abort(new Error('gone'));
      await expect(store.read(addressOf(), aborted, ignoreSize)).rejects.toThrow('gone');
    });

    test('a write that has begun completes after the store is closed', async () => {
      const writing = writeText(addressOf(), 'a');
      store.close();
      await writing;
    });
  });
}
