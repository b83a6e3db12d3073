/** Places of each replica on the ring: as many as nginx takes (`hash … consistent`). */
const PLACES = 160;

/** Consistent hashing: a replica more or less moves only the keys that it takes or gave. */
export class HashRing {
  readonly #places: Uint32Array;
  readonly #owners: Int32Array;

  constructor(replicas: number) {
    const all = Array.from({ length: replicas * PLACES }, (_, index) => ({
      place: hashPair(index % replicas, Math.floor(index / replicas) + 0x5eed),
      owner: index % replicas,
    })).sort((one, other) => one.place - other.place);
    this.#places = Uint32Array.from(all, ({ place }) => place);
    this.#owners = Int32Array.from(all, ({ owner }) => owner);
  }

  /** The replica that a key belongs to: the first one from its place on, around the ring. */
  ownerOf(hash: number): number {
    let low = 0;
    let high = this.#places.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#places[middle] ?? 0) < hash) low = middle + 1;
      else high = middle;
    }
    return this.#owners[low === this.#places.length ? 0 : low] ?? 0;
  }
}

/** Two numbers into 32 bits, as if at random (the last steps of MurmurHash3). */
export function hashPair(one: number, other: number): number {
  let mixed = Math.imul(one + 1, 0x9e3779b1) ^ Math.imul(other + 1, 0x85ebca77);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
