import { LRUCache } from 'lru-cache';
import type { StoreUsage } from '../../pipeline/ports.ts';

/** Allocation unit of file systems, in bytes: the disk space of the smallest file or folder. */
const BLOCK_BYTES = 4096;

/** Disk space of a folder, in bytes; more if the folder has very many entries. */
export const FOLDER_COST_BYTES = BLOCK_BYTES;

/**
 * Returns the disk space of a file, in bytes: its length in whole blocks. The system's own count is not used, since
 * some file systems (ZFS, btrfs) decide on it long after the write.
 */
export function fileCostBytes(sizeBytes: number): number {
  return Math.max(1, Math.ceil(sizeBytes / BLOCK_BYTES)) * BLOCK_BYTES;
}

/**
 * Index of the files in a folder: their disk space together with their folders, and their order of use. The sum is
 * never less than the space in use: writes reserve space in advance, and removed files count until they are gone.
 *
 * An entry takes some 200 bytes of memory (measured with a million of them, paths of 94 characters), and there are at
 * most as many as blocks of 4096 bytes in the bound. Its table grows by doubling, which takes 0.08 s at half a million
 * entries, once.
 */
export class FileIndex {
  readonly maxBytes: number;
  /** Disk space of the files, by path; in the order of their last use. */
  readonly #files: LRUCache<string, number>;
  #heldBytes: number;
  #evictions = 0;

  /** @param heldBytes space in use on the disk; its files follow by `restore` */
  constructor(maxBytes: number, heldBytes: number) {
    this.maxBytes = maxBytes;
    this.#heldBytes = heldBytes;
    // The cache evicts nothing by itself: the bounded sum also includes folders.
    this.#files = new LRUCache({
      maxSize: Number.MAX_SAFE_INTEGER,
      sizeCalculation: (costBytes) => costBytes,
    });
  }

  get usage(): StoreUsage {
    return { heldBytes: this.#heldBytes, maxBytes: this.maxBytes, evictions: this.#evictions };
  }

  has(path: string): boolean {
    return this.#files.has(path);
  }

  touch(path: string): void {
    this.#files.get(path);
  }

  /** Adds a file found on the disk as the most recently used; the sum already includes the file. */
  restore(path: string, costBytes: number): void {
    this.#files.set(path, costBytes);
  }

  /** Adds a written file, in place of one with the same path. */
  add(path: string, costBytes: number): void {
    this.#heldBytes += costBytes - (this.#files.peek(path) ?? 0);
    this.#files.set(path, costBytes);
  }

  forget(path: string): void {
    const costBytes = this.#files.peek(path);
    if (costBytes === undefined) return;
    this.#files.delete(path);
    this.#heldBytes -= costBytes;
  }

  /** Reserves space for a write, if available; `release` must follow. */
  tryReserve(costBytes: number): boolean {
    if (this.#heldBytes + costBytes > this.maxBytes) return false;
    this.#heldBytes += costBytes;
    return true;
  }

  /** Releases reserved space, or that of a removed folder. */
  release(costBytes: number): void {
    this.#heldBytes -= costBytes;
  }

  /**
   * Evicts the least recently used file, which counts until it is gone from the disk.
   *
   * @param remove removes a file, which may already be missing
   * @returns whether there was a file
   * @throws errors of `remove`; the file then counts as recently used, so that another one is next
   */
  async evict(remove: (path: string) => Promise<void>): Promise<boolean> {
    const path = this.#files.rkeys().next().value;
    const costBytes = path === undefined ? undefined : this.#files.peek(path);
    if (path === undefined || costBytes === undefined) return false;
    this.#files.delete(path);
    try {
      await remove(path);
    } catch (error) {
      this.#files.set(path, costBytes);
      throw error;
    }
    this.#heldBytes -= costBytes;
    this.#evictions += 1;
    return true;
  }
}
