import { describe, expect, test } from 'vitest';
import { originKeyOf } from '../../src/contract/media-path.ts';
import { type CatalogueShelf, listCatalogue } from '../../src/explorer/catalogue.ts';
import type { OriginListing } from '../../src/pipeline/ports.ts';

const BOUNDS = { maxOriginals: 3, maxObjects: 10, timeoutMs: 60_000 };

/** Lists a storage with these keys, and counts the visited ones. */
async function list(keys: readonly string[]) {
  let shown = 0;
  const listing: OriginListing = {
    list: async (prefix, visit) => {
      await undefined;
      for (const key of keys.filter((each) => each.startsWith(prefix))) {
        shown += 1;
        if (!visit({ key, sizeBytes: key.length })) return;
      }
    },
  };
  return { shelves: await listCatalogue(listing, BOUNDS), shown };
}

const shelfOf = (shelves: readonly CatalogueShelf[], name: string) => {
  const shelf = shelves.find(({ resource }) => resource === name);
  return { keys: shelf?.originals.map(({ key }) => key), isComplete: shelf?.isComplete };
};

describe('catalogue of originals', () => {
  test('omits keys without a path, and sorts numbers by value', async () => {
    const lost = ['avatars/01/ab', 'avatars/1/a b', 'avatars/1/x/y'];
    const member = 'guilds/1/users/2/avatars/ab';
    const own = ['avatars/10/ab', 'avatars/9/ab', 'avatars/1/a_ab'];
    const { shelves } = await list([...lost, ...own, member]);
    // A hash that begins with `a_` has it twice in its path.
    const { originals = [] } = shelves.find(({ resource }) => resource === 'user avatar') ?? {};
    expect(originals.map(({ key }) => key)).toEqual(own.toReversed());
    for (const { key, values } of originals) {
      expect(originKeyOf({ resource: 'user avatar', values })).toBe(key);
    }
    expect(shelfOf(shelves, 'member avatar')).toEqual({ keys: [member], isComplete: true });
    expect(shelfOf(shelves, 'sticker')).toEqual({ keys: [], isComplete: true });
  });

  test('stops when its shelves are full, and reports them as incomplete', async () => {
    const keys = Array.from({ length: 8 }, (_, index) => `emojis/${index}`);
    const icons = ['icons/1/a', 'icons/2/a', 'icons/3/a'];
    const { shelves, shown } = await list([...keys, ...icons]);
    expect(shelfOf(shelves, 'custom emoji')).toEqual({
      keys: ['emojis/0', 'emojis/1', 'emojis/2'],
      isComplete: false,
    });
    // A shelf at its limit is complete if nothing follows.
    expect(shelfOf(shelves, 'guild icon')).toMatchObject({ isComplete: true });
    expect(shown).toBe(4 + 3);
  });

  test('continues after a full shelf with the other shelf of the same directory', async () => {
    const avatars = Array.from({ length: 5 }, (_, id) => `guilds/1/users/${id}/avatars/ab`);
    const { shelves } = await list([...avatars, 'guilds/2/users/1/banners/ab']);
    expect(shelfOf(shelves, 'member avatar')).toMatchObject({ isComplete: false });
    expect(shelfOf(shelves, 'member banner')).toMatchObject({
      keys: ['guilds/2/users/1/banners/ab'],
      isComplete: true,
    });
  });

  test('limits the number of visited objects', async () => {
    const { shelves, shown } = await list(Array.from({ length: 50 }, (_, id) => `avatars/${id}`));
    expect(shelfOf(shelves, 'user avatar')).toEqual({ keys: [], isComplete: false });
    expect(shown).toBe(10);
  });

  test('returns the listed originals at the deadline, or throws without any', async () => {
    const stall = (signal: AbortSignal): Promise<never> =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    const bounds = { ...BOUNDS, timeoutMs: 20 };
    const listing: OriginListing = {
      list: async (prefix, visit, signal) => {
        if (prefix === 'emojis/') visit({ key: 'emojis/1', sizeBytes: 1 });
        if (prefix === 'emojis/' || prefix === 'avatars/') await stall(signal);
      },
    };
    const shelves = await listCatalogue(listing, bounds);
    expect(shelfOf(shelves, 'custom emoji')).toEqual({ keys: ['emojis/1'], isComplete: false });
    expect(shelfOf(shelves, 'user avatar')).toEqual({ keys: [], isComplete: false });
    expect(shelfOf(shelves, 'guild icon')).toEqual({ keys: [], isComplete: true });

    const silent: OriginListing = { list: (_prefix, _visit, signal) => stall(signal) };
    await expect(listCatalogue(silent, bounds)).rejects.toMatchObject({ code: 'ORIGIN_TIMEOUT' });
  });
});
