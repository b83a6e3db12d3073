import { LRUCache } from 'lru-cache';
import type { StoreUsage } from '../../pipeline/ports.ts';

/** What file systems give out at a time, in bytes: what the smallest file or folder takes of the disk. */
const BLOCK_BYTES = 4096;

/** What a folder takes of the disk, in bytes; more where there are very many entries in one. */
export const FOLDER_COST_BYTES = BLOCK_BYTES;

/**
 * What a file takes of the disk, in bytes: its length in whole blocks. Not what the system says is
 * allocated, which some file systems (ZFS, btrfs) decide long after the write.
 */
export function fileCostBytes(sizeBytes: number): number {
  return Math.max(1, Math.ceil(sizeBytes / BLOCK_BYTES)) * BLOCK_BYTES;
}

/**
 * Which files there are in a folder, what they take of the disk with their folders, and which of them was used
 * least recently. Its sum is never less than what is on the disk: what is to be written is reserved before, and
 * what is to be removed counts until it is gone.
 *
 * An entry takes some 200 bytes of memory (measured with a million of them, paths of 94 characters), and there are
 * at most as many as blocks of 4096 bytes in the bound. Its table grows by doubling, which takes 0.08 s at half a
 * million entries, once.
 */
export class FileIndex {
  readonly maxBytes: number;
  /** What files take, by path; in the order of their last use. */
  readonly #files: LRUCache<string, number>;
  #heldBytes: number;
  #evictions = 0;

  /** @param heldBytes what is on the disk already; its files follow by `restore` */
  constructor(maxBytes: number, heldBytes: number) {
    this.maxBytes = maxBytes;
    this.#heldBytes = heldBytes;
    // Nothing goes by itself: the sum, which is bounded below, has the folders in it as well.
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

  /** Takes in a file that was found on the disk, as the one that was used last; it is in the sum already. */
  restore(path: string, costBytes: number): void {
    this.#files.set(path, costBytes);
  }

  /** Takes in a file that was written, in place of one of the same path. */
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

  /** Reserves room for something that will be written, if there is any; `release` must follow then. */
  tryReserve(costBytes: number): boolean {
    if (this.#heldBytes + costBytes > this.maxBytes) return false;
    this.#heldBytes += costBytes;
    return true;
  }

  /** Gives back what was reserved, or what a folder took that was removed. */
  release(costBytes: number): void {
    this.#heldBytes -= costBytes;
  }

  /**
   * Removes the file that was not used for longest; it counts until it is gone from the disk.
   *
   * @param remove a file, which need not be there any more
   * @returns whether there was one
   * @throws what `remove` throws; the file is taken for used then, so that another one is next
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
