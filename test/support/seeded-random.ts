/** Numbers that look random and are the same for the same seed, on every machine. */
export type SeededRandom = ReturnType<typeof createSeededRandom>;

/**
 * Creates a generator (mulberry32: 32 bits of state, enough to vary test data by, for nothing else).
 *
 * @param seed any text; numbers that belong together are joined in it: `1:gif:42`
 */
export function createSeededRandom(seed: string) {
  let state = hash(seed);
  const next = (): number => {
    state = (state + 0x6d2b_79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  /** An integer of 0 to `below` − 1. */
  const integer = (below: number): number => Math.floor((next() / 2 ** 32) * below);
  return {
    integer,
    /** One of the items; there must be one. */
    pick: <Item>(items: readonly Item[]): Item => {
      const item = items[integer(items.length)];
      if (item === undefined) throw new Error('Expected items to pick from but received none');
      return item;
    },
    bytes: (count: number): Buffer => {
      const bytes = Buffer.allocUnsafe(count);
      for (let at = 0; at < count; at += 1) bytes[at] = next() & 0xff;
      return bytes;
    },
  };
}

/** FNV-1a, so that neighbouring seeds begin far from each other. */
function hash(text: string): number {
  let value = 0x811c_9dc5;
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x0100_0193);
  return value | 0;
}
