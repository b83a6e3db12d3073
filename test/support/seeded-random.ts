/** Pseudo-random numbers, the same for a seed on every machine. */
export type SeededRandom = ReturnType<typeof createSeededRandom>;

/** Creates a mulberry32 generator; its 32 bits of state suffice for test data only. */
export function createSeededRandom(seed: string) {
  let state = hash(seed);
  const next = (): number => {
    state = (state + 0x6d2b_79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  /** Returns an integer from 0 to `below` − 1. */
  const integer = (below: number): number => Math.floor((next() / 2 ** 32) * below);
  return {
    integer,
    /** @throws Error if there are no items */
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

/** FNV-1a, so that similar seeds start with very different states. */
function hash(text: string): number {
  let value = 0x811c_9dc5;
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x0100_0193);
  return value | 0;
}
