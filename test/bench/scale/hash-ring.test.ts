import { describe, expect, test } from 'vitest';
import { HashRing, hashPair } from '../../../bench/scale/hash-ring.ts';

const keys = Array.from({ length: 20_000 }, (_, index) => hashPair(index, 0));

describe('consistent hashing', () => {
  test('gives each replica about the same', () => {
    const ring = new HashRing(10);
    const counts = Array<number>(10).fill(0);
    for (const key of keys) counts[ring.ownerOf(key)] = (counts[ring.ownerOf(key)] ?? 0) + 1;
    expect(Math.min(...counts)).toBeGreaterThan(0.7 * 2_000);
    expect(Math.max(...counts)).toBeLessThan(1.35 * 2_000);
  });

  test('one replica more moves its own share of the keys, and to itself alone', () => {
    const [before, after] = [new HashRing(10), new HashRing(11)];
    const moved = keys.filter((key) => before.ownerOf(key) !== after.ownerOf(key));
    expect(moved.every((key) => after.ownerOf(key) === 10)).toBe(true);
    expect(moved.length / keys.length).toBeGreaterThan(0.05);
    expect(moved.length / keys.length).toBeLessThan(0.14);
  });
});
