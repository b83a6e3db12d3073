import { describe, expect, test } from 'vitest';
import { MemoryCache } from '../../src/pipeline/memory-cache.ts';

const create = (maxBytes: number, maxShare?: number) =>
  new MemoryCache<{ readonly body: Uint8Array }>({
    maxBytes,
    bytesOf: ({ body }) => body,
    ...(maxShare !== undefined && { maxShare }),
  });
const entry = (length: number) => ({ body: new Uint8Array(length) });

describe('a memory cache', () => {
  test('is bounded by bytes, and lets go of what was used least recently', () => {
    const cache = create(5_000);
    for (const key of ['a', 'b', 'c']) expect(cache.set(key, entry(1_000))).toBe(true);
    cache.get('a');
    cache.set('d', entry(1_000));
    const kept = ['a', 'b', 'c', 'd'].filter((key) => cache.get(key) !== undefined);
    expect(kept).toEqual(['a', 'c', 'd']);
  });

  test('says when it does not keep what is too large, and drives nothing out for it', () => {
    const cache = create(8_000, 1 / 4);
    expect(cache.set('a', entry(1_000))).toBe(true);
    expect(cache.set('b', entry(2_000))).toBe(false);
    expect(cache.get('b')).toBeUndefined();
    expect(cache.get('a')).toBeDefined();
  });

  test('of no bytes keeps nothing', () => {
    const cache = create(0);
    expect(cache.set('a', entry(1))).toBe(false);
    expect(cache.get('a')).toBeUndefined();
    expect(cache.deleteWhere(() => true)).toBe(0);
  });

  test('removes what fits, and counts it', () => {
    const cache = create(10_000);
    for (const key of ['a/1', 'a/2', 'b/1']) cache.set(key, entry(10));
    expect(cache.deleteWhere((key) => key.startsWith('a/'))).toBe(2);
    expect(cache.get('a/1')).toBeUndefined();
    expect(cache.get('b/1')).toBeDefined();
  });
});
