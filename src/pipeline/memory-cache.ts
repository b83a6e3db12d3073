import { LRUCache } from 'lru-cache';

/** A result or an original; its bytes are the bulk of it. */
type Entry = { readonly body: Uint8Array } | { readonly bytes: Uint8Array };

interface CacheOptions {
  /** Contents, keys and overhead together; 0 keeps nothing. */
  readonly maxBytes: number;
  /** Largest entry, overhead included, as a part of the whole; 1 by default. */
  readonly maxShare?: number;
}

/** Estimated cost of an entry besides its bytes and key: validators, map and list nodes. */
const ENTRY_OVERHEAD_BYTES = 512;

/** Cache in memory, bounded by bytes; it evicts the least recently used entry first. */
export class MemoryCache<Value extends Entry> {
  readonly #cache: LRUCache<string, Value>;
  readonly maxBytes: number;
  #evictions = 0;

  constructor({ maxBytes, maxShare = 1 }: CacheOptions) {
    this.maxBytes = maxBytes;
    this.#cache = new LRUCache({
      // A bound of one byte keeps nothing; for `LRUCache`, 0 means no bound.
      maxSize: Math.max(1, maxBytes),
      maxEntrySize: Math.max(1, Math.floor(maxBytes * maxShare)),
      sizeCalculation: (value, key) =>
        bulkOf(value).byteLength + 2 * key.length + ENTRY_OVERHEAD_BYTES,
      dispose: (_value, _key, reason) => {
        if (reason === 'evict') this.#evictions += 1;
      },
    });
  }

  get heldBytes(): number {
    return this.#cache.calculatedSize;
  }

  get entries(): number {
    return this.#cache.size;
  }

  get evictions(): number {
    return this.#evictions;
  }

  get(key: string): Value | undefined {
    return this.#cache.get(key);
  }

  /** Keeps a value unless it is too large, and returns whether it did. */
  set(key: string, value: Value): boolean {
    return this.#cache.set(key, value).has(key);
  }

  deleteWhere(fits: (key: string) => boolean): number {
    return deleteWhere(this.#cache, fits);
  }
}

function bulkOf(entry: Entry): Uint8Array {
  return 'body' in entry ? entry.body : entry.bytes;
}

/** Removes the entries whose keys fit, and returns how many. */
export function deleteWhere(
  cache: Pick<LRUCache<string, NonNullable<unknown>>, 'keys' | 'delete'>,
  fits: (key: string) => boolean,
): number {
  const keys = [...cache.keys()].filter(fits);
  for (const key of keys) cache.delete(key);
  return keys.length;
}
