import { describe, expect, test } from 'vitest';
import { AgedStore, ByteLru } from '../../../bench/scale/byte-lru.ts';

describe('an LRU by bytes', () => {
  test('by hand: the least recently used goes first, as many as must', () => {
    const lru = new ByteLru(100);
    expect(lru.touch(1)).toBe(false);
    lru.add(1, 40);
    lru.add(2, 40);
    expect(lru.touch(1)).toBe(true); // 2 is the oldest now
    lru.add(3, 30);
    expect([1, 2, 3].map((key) => lru.touch(key))).toEqual([true, false, true]);
    lru.add(4, 70);
    expect([1, 3, 4].map((key) => lru.touch(key))).toEqual([false, true, true]);
    expect(lru.usedBytes).toBe(100);
  });

  test('what is larger than all of it is not kept, and costs nobody a place', () => {
    const lru = new ByteLru(100);
    lru.add(1, 60);
    expect(lru.add(2, 101)).toBe(false);
    expect(lru.touch(1)).toBe(true);
  });

  test('a second entry of the same key takes the place of the first', () => {
    const lru = new ByteLru(100);
    lru.add(1, 60);
    lru.add(1, 20);
    expect(lru.usedBytes).toBe(20);
    lru.remove(1);
    expect(lru.usedBytes).toBe(0);
  });

  test('with no bytes it keeps nothing', () => {
    expect(new ByteLru(0).add(1, 1)).toBe(false);
  });
});

describe('a store bounded by age', () => {
  test('forgets what was written too long ago, however often it was read', () => {
    const store = new AgedStore(10);
    store.add(1, 5, 0);
    store.add(2, 7, 6);
    expect(store.touch(1, 10)).toBe(true);
    expect(store.touch(1, 11)).toBe(false);
    expect(store.usedBytes).toBe(7);
  });
});
