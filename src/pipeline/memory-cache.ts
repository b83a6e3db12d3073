import { LRUCache } from 'lru-cache';

type Entry = { readonly body: Uint8Array } | { readonly bytes: Uint8Array };

/** Estimated size of an entry in addition to its bytes and key. */
const ENTRY_OVERHEAD_BYTES = 512;

export class MemoryCache<Value extends Entry> extends LRUCache<string, Value> {
  readonly maxBytes: number;
  readonly #evicted: { count: number };

  /**
   * @param maxBytes bound of contents, keys and overhead; 0 stores nothing
   * @param maxFraction maximum size of an entry, as a fraction of `maxBytes`
   */
  constructor(maxBytes: number, maxFraction = 1) {
    const evicted = { count: 0 };
    super({
      // For `LRUCache`, 0 means unbounded; a bound of one byte stores nothing.
      maxSize: Math.max(1, maxBytes),
      maxEntrySize: Math.max(1, Math.floor(maxBytes * maxFraction)),
      sizeCalculation: (entry, key) =>
        ('body' in entry ? entry.body : entry.bytes).byteLength +
        2 * key.length +
        ENTRY_OVERHEAD_BYTES,
      dispose: (_entry, _key, reason) => {
        if (reason === 'evict') evicted.count += 1;
      },
    });
    this.maxBytes = maxBytes;
    this.#evicted = evicted;
  }

  get heldBytes(): number {
    return this.calculatedSize;
  }

  get evictions(): number {
    return this.#evicted.count;
  }
}

/** Removes the entries with matching keys, and returns their number. */
export function deleteWhere(
  cache: Pick<LRUCache<string, NonNullable<unknown>>, 'keys' | 'delete'>,
  fits: (key: string) => boolean,
): number {
  const keys = [...cache.keys()].filter(fits);
  for (const key of keys) cache.delete(key);
  return keys.length;
}
