import { LRUCache } from 'lru-cache';

/** Bounds of a cache. */
interface CacheOptions<Value> {
  /** Contents, keys and overhead together; 0 keeps nothing. */
  readonly maxBytes: number;
  /** Largest entry, overhead included, as a part of the whole; 1 where nothing else is said. */
  readonly maxShare?: number;
  /** Returns the bulk of an entry. */
  readonly bytesOf: (value: Value) => Uint8Array;
}

/** Estimated cost of an entry besides its bytes and key: validators, map and list nodes. */
const ENTRY_OVERHEAD_BYTES = 512;

/** Cache in memory, bounded by bytes; it evicts the least recently used entry first. */
export class MemoryCache<Value extends object> {
  readonly #cache: LRUCache<string, Value>;
  readonly maxBytes: number;
  #evictions = 0;

  constructor({ maxBytes, maxShare = 1, bytesOf }: CacheOptions<Value>) {
    this.maxBytes = maxBytes;
    this.#cache = new LRUCache({
      // Of one byte nothing is kept, as 0 means: 0 would be without a bound.
      maxSize: Math.max(1, maxBytes),
      maxEntrySize: Math.max(1, Math.floor(maxBytes * maxShare)),
      sizeCalculation: (value, key) =>
        bytesOf(value).byteLength + 2 * key.length + ENTRY_OVERHEAD_BYTES,
      dispose: (_value, _key, reason) => {
        if (reason === 'evict') this.#evictions += 1;
      },
    });
  }

  /** Bytes of all entries, as far as they are counted. */
  get heldBytes(): number {
    return this.#cache.calculatedSize;
  }

  get entries(): number {
    return this.#cache.size;
  }

  /** Entries that had to go for others, since the start. */
  get evictions(): number {
    return this.#evictions;
  }

  get(key: string): Value | undefined {
    return this.#cache.get(key);
  }

  /** Keeps a value; tells whether it did (one that is too large is not kept). */
  set(key: string, value: Value): boolean {
    return this.#cache.set(key, value).has(key);
  }

  /** Removes the values whose keys fit; tells how many. */
  deleteWhere(fits: (key: string) => boolean): number {
    return deleteWhere(this.#cache, fits);
  }
}

/** Removes the entries whose keys fit; tells how many. */
export function deleteWhere(
  cache: Pick<LRUCache<string, NonNullable<unknown>>, 'keys' | 'delete'>,
  fits: (key: string) => boolean,
): number {
  const keys = [...cache.keys()].filter(fits);
  for (const key of keys) cache.delete(key);
  return keys.length;
}
