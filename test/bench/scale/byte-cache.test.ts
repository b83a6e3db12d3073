import { expect, test } from 'vitest';
import { ByteCache } from '../../../bench/scale/byte-cache.ts';

test('the least recently used goes first, as many as must; a second entry takes the place of the first', () => {
  const cache = new ByteCache(100);
  cache.add(1, 40);
  cache.add(2, 40);
  expect(cache.touch(1)).toBe(true); // 2 is the oldest now
  cache.add(3, 30);
  expect([1, 2, 3].map((key) => cache.touch(key))).toEqual([true, false, true]);
  cache.add(3, 60);
  expect(cache.usedBytes).toBe(100);
  cache.remove(1);
  expect(cache.usedBytes).toBe(60);
});

test('what is larger than all of it is not kept, and costs no other its place', () => {
  const cache = new ByteCache(100);
  cache.add(1, 60);
  expect(cache.add(2, 101)).toBe(false);
  expect(cache.touch(1)).toBe(true);
  expect(new ByteCache(0).add(1, 2)).toBe(false);
});
