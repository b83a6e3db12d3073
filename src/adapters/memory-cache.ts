import { LRUCache } from 'lru-cache';
import type { MediaResult, ResultCache } from '../pipeline/ports.ts';

/** What an entry costs besides its body and key: validators, map and list nodes; an estimate. */
const ENTRY_OVERHEAD_BYTES = 512;

/** Results in memory, bounded by bytes, least recently used first out. */
export class MemoryCache implements ResultCache {
  readonly #cache: LRUCache<string, MediaResult> | undefined;

  /** @param maxBytes bodies, keys and overhead together; 0 keeps nothing */
  constructor(maxBytes: number) {
    this.#cache =
      maxBytes === 0
        ? undefined
        : new LRUCache({
            maxSize: maxBytes,
            sizeCalculation: ({ body }, key) =>
              body.byteLength + 2 * key.length + ENTRY_OVERHEAD_BYTES,
          });
  }

  get(key: string): MediaResult | undefined {
    return this.#cache?.get(key);
  }

  set(key: string, result: MediaResult): boolean {
    return this.#cache?.set(key, result).has(key) ?? false;
  }

  deleteWhere(fits: (key: string) => boolean): number {
    const keys = [...(this.#cache?.keys() ?? [])].filter(fits);
    for (const key of keys) this.#cache?.delete(key);
    return keys.length;
  }
}
