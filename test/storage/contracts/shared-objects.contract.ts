import { beforeEach, describe, expect, test } from 'vitest';
import {
  MAX_OBJECT_BYTES,
  probeConditions,
  type SharedObjects,
} from '../../../src/pipeline/blocks/ports.ts';

export function describeSharedObjects(name: string, create: () => Promise<SharedObjects>): void {
  describe(`${name} meets the contract of shared objects:`, () => {
    let objects: SharedObjects;
    beforeEach(async () => {
      objects = await create();
    });

    const write = (key: string, text: string, condition: Parameters<typeof objects.write>[2]) =>
      objects.write(key, Buffer.from(text), condition);
    const read = async (key: string): Promise<string | undefined> => {
      const found = await objects.read(key);
      return found && Buffer.from(found.bytes).toString();
    };

    test('the probe detects conditional writes, and leaves no object', async () => {
      await probeConditions(objects);
      expect(await objects.list('')).toEqual([]);
    });

    test('an object is created only if it is missing, and replaced only by a writer with its version', async () => {
      expect(await objects.read('a')).toBeUndefined();
      const first = await write('a', 'one', 'absent');
      expect(await write('a', 'two', 'absent')).toBeUndefined();
      expect(await write('a', 'two', { tag: 'another' })).toBeUndefined();
      const found = await objects.read('a');
      expect([found?.tag, await objects.findTag('a'), await read('a')]).toEqual([
        first,
        first,
        'one',
      ]);
      const second = await write('a', 'two', { tag: first ?? '' });
      expect(second).toEqual(expect.any(String));
      expect(await write('a', 'three', { tag: first ?? '' })).toBeUndefined();
      expect(await read('a')).toBe('two');
      await objects.remove('a');
      await objects.remove('a');
      expect(await write('a', 'four', { tag: second ?? '' })).toBeUndefined();
      expect(await read('a')).toBeUndefined();
      expect(await objects.findTag('a')).toBeUndefined();
    });

    test('objects of up to 16 MiB are read, and longer ones rejected', async () => {
      const bytes = Buffer.alloc(MAX_OBJECT_BYTES + 1, 'x');
      expect(await objects.write('', bytes.subarray(1), 'absent')).toEqual(expect.any(String));
      expect((await objects.read(''))?.bytes.length).toBe(MAX_OBJECT_BYTES);
      await write('empty', '', 'absent');
      expect(await read('empty')).toBe('');
      await objects.write('long', bytes, 'absent');
      await expect(objects.read('long')).rejects.toThrow();
    });

    test('names are listed by their prefix', async () => {
      for (const name of ['', '1', '12', 'journal-a']) await write(name, 'x', 'absent');
      expect([...(await objects.list(''))].sort()).toEqual(['1', '12', 'journal-a']);
      expect([...(await objects.list('1'))].sort()).toEqual(['1', '12']);
    });

    test('exactly one of several concurrent writes succeeds', async () => {
      let races = 0;
      const race = async (condition: Parameters<typeof objects.write>[2]) => {
        races += 1;
        // Each race has other bytes: on S3, equal bytes have equal tags, and two writers could succeed in turn.
        const rivals = Array.from({ length: 8 }, (_, number) => `rival ${number} of race ${races}`);
        const tags = await Promise.all(rivals.map((text) => write('race', text, condition)));
        const winners = rivals.filter((_, number) => tags[number] !== undefined);
        expect(winners).toEqual([await read('race')]);
        return tags.find((tag) => tag !== undefined) ?? '';
      };
      let tag = await race('absent');
      for (let round = 0; round < 5; round += 1) tag = await race({ tag });
    });
  });
}
