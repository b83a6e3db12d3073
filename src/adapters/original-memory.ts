import { LRUCache } from 'lru-cache';
import type { KeptOriginal, OriginalCache } from '../pipeline/ports.ts';

/** What an entry costs besides its bytes and key; an estimate. */
const ENTRY_OVERHEAD_BYTES = 512;

/** One original takes no more than this part of the memory: a film would drive all avatars out. */
const MAX_SHARE = 1 / 8;

/** Originals that were read lately, bounded by bytes, least recently used first out. */
export class OriginalMemory implements OriginalCache {
  readonly #cache: LRUCache<string, KeptOriginal> | undefined;

  /** @param maxBytes originals, keys and overhead together; 0 keeps nothing */
  constructor(maxBytes: number) {
    this.#cache =
      maxBytes === 0
        ? undefined
        : new LRUCache({
            maxSize: maxBytes,
            maxEntrySize: Math.max(1, Math.floor(maxBytes * MAX_SHARE)),
            sizeCalculation: ({ bytes }, key) =>
              bytes.byteLength + 2 * key.length + ENTRY_OVERHEAD_BYTES,
          });
  }

  get(originKey: string): KeptOriginal | undefined {
    return this.#cache?.get(originKey);
  }

  set(originKey: string, original: KeptOriginal): void {
    this.#cache?.set(originKey, original);
  }

  deleteWhere(fits: (originKey: string) => boolean): void {
    for (const key of [...(this.#cache?.keys() ?? [])].filter(fits)) this.#cache?.delete(key);
  }
}
