import { LRUCache } from 'lru-cache';

/**
 * A cache of entries that are nothing but their sizes, least recently used out first; what is larger than all of it is
 * not kept. Keys are numbers of renderings or originals.
 */
export class ByteCache {
  readonly #entries: LRUCache<number, number>;

  /** @param maxBytes 0 keeps nothing, infinity everything */
  constructor(maxBytes: number) {
    this.#entries = new LRUCache({
      // No entry is as small as 1 byte.
      maxSize: Math.max(1, Math.floor(Math.min(maxBytes, Number.MAX_SAFE_INTEGER))),
      sizeCalculation: (bytes) => Math.max(2, Math.round(bytes)),
    });
  }

  /** Held now. */
  get usedBytes(): number {
    return this.#entries.calculatedSize;
  }

  /** Whether it holds this; if so, it was used just now. */
  touch(key: number): boolean {
    return this.#entries.get(key) !== undefined;
  }

  /** Takes this in; tells whether it did. */
  add(key: number, bytes: number): boolean {
    return this.#entries.set(key, bytes).has(key);
  }

  remove(key: number): void {
    this.#entries.delete(key);
  }
}
