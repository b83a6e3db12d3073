import { beforeEach, describe, expect, test } from 'vitest';
import type { ListedOriginal, OriginListing } from '../../../src/pipeline/ports.ts';
import { signal } from '../../support/open-stream.ts';
import { hardNames } from './origin.contract.ts';

export interface ListingFixture {
  readonly listing: OriginListing;
  readonly put: (key: string, bytes: Uint8Array) => Promise<void>;
}

export async function list(listing: OriginListing, prefix: string, max = Infinity) {
  const found: ListedOriginal[] = [];
  await listing.list(prefix, (original) => found.push(original) < max, signal);
  return found;
}

export function describeOriginListing(name: string, create: () => Promise<ListingFixture>): void {
  describe(`${name} meets the contract of a listing:`, () => {
    let fixture: ListingFixture;
    beforeEach(async () => {
      fixture = await create();
    });

    const put = async (...keys: string[]): Promise<void> => {
      for (const key of keys) await fixture.put(key, Buffer.from(key));
    };
    const keysOf = async (prefix: string, max?: number) =>
      (await list(fixture.listing, prefix, max)).map(({ key }) => key).sort();

    test('each object is listed after the visitor has finished the previous one', async () => {
      await put('emojis/1', 'emojis/2', 'emojis/3');
      let running = 0;
      let max = 0;
      const visit = async (): Promise<boolean> => {
        running += 1;
        max = Math.max(max, running);
        await new Promise((resolve) => setTimeout(resolve, 5));
        running -= 1;
        return true;
      };
      await fixture.listing.list('emojis/', visit, signal);
      expect([running, max]).toEqual([0, 1]);
    });

    test('objects are listed with key and size', async () => {
      await fixture.put('emojis/1', Buffer.from('original'));
      await fixture.put('emojis/2', Buffer.alloc(0));
      const found = await list(fixture.listing, 'emojis/');
      expect(found.sort((a, b) => a.key.localeCompare(b.key))).toEqual([
        { key: 'emojis/1', sizeBytes: 8 },
        { key: 'emojis/2', sizeBytes: 0 },
      ]);
    });

    test('every object below the prefix is listed, at any depth, and no other', async () => {
      await put('avatars/1/ab', 'avatars/2/c/d/e', 'avatars-2/1/ab', 'stickers');
      expect(await keysOf('avatars/')).toEqual(['avatars/1/ab', 'avatars/2/c/d/e']);
      for (const empty of ['stickers/', 'icons/']) expect(await keysOf(empty)).toEqual([]);
    });

    test('file names are listed unchanged', async () => {
      const keys = hardNames.map((filename) => `attachments/1/2/${filename}`);
      await put(...keys);
      expect(await keysOf('attachments/')).toEqual(keys.sort());
    });

    test('the listing ends as soon as the caller has enough', async () => {
      await put(...Array.from({ length: 20 }, (_, index) => `avatars/${index}/ab`));
      expect(await keysOf('avatars/', 3)).toHaveLength(3);
    });

    test('a listing with an aborted signal is rejected', async () => {
      await put('emojis/1');
      const aborted = AbortSignal.abort(new Error('gone'));
      const visited: string[] = [];
      const visit = ({ key }: ListedOriginal) => visited.push(key) > 0;
      await expect(fixture.listing.list('emojis/', visit, aborted)).rejects.toThrow('gone');
      expect(visited).toEqual([]);
    });
  });
}
