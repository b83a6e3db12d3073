import { join } from 'node:path';
import type {
  Log,
  ResultAddress,
  ResultStore,
  StoredResult,
  StoreUsage,
} from '../../pipeline/ports.ts';
import { makeFolder } from '../filesystem/whole-file.ts';
import { formatResultFile, MAX_RESULT_FILE_BYTES, storedPathOf } from '../result-file.ts';
import { type FileIndex, FOLDER_COST_BYTES, fileCostBytes } from './file-index.ts';
import { isOnNetwork } from './folder-lock.ts';
import { FolderOwner } from './folder-owner.ts';
import { scanFolder } from './folder-scan.ts';
import { openRenderingFolder, RenderingFolder } from './rendering-folder.ts';

/** Options of a store of renderings on a disk. */
export interface DiskCacheOptions {
  /** Folder for this store alone; created if missing. */
  readonly folder: string;
  /** Bound of the disk space in bytes, counted in whole blocks, folders included. */
  readonly maxBytes: number;
  readonly log: Log;
  /** Longest time of each step of a removal, in milliseconds. */
  readonly stallTimeoutMs?: number;
}

/** Largest rendering that is stored, as a share of the bound: a single one must not evict many others. */
const MAX_RESULT_PART = 0.05;

const UNREADABLE = 'the folder of the result store cannot be read; renderings are not stored';

/**
 * Renderings in a folder (`RenderingFolder`) that one process owns (`FolderOwner`), within a bound: an index in memory
 * (`FileIndex`) knows them all, and evicts the least recently used before a write. A rendering that still does not fit
 * is not stored, which is not an error: a full disk costs new renderings, never the stored ones.
 *
 * If another process owns the folder, the store finds, stores and removes nothing. When the owner has ended, however it
 * ends, this process takes the folder over at once.
 *
 * One scan builds the index once the folder is ours; no request waits for it. Until then, reads go by path, removals
 * work, and nothing is written, since the free room is unknown.
 *
 * Not covered: files that others add to the folder or remove from it. Removed files count until their eviction; the
 * next scan finds added ones.
 */
export class DiskCache implements ResultStore {
  readonly #options: DiskCacheOptions;
  readonly #files: RenderingFolder;
  readonly #maxFileBytes: number;
  readonly #owner: FolderOwner;
  /** The index, once all files are counted. */
  #index: FileIndex | undefined;
  /** Whether the index contains all files. */
  #isScanned = false;

  /** @param folder a real path; see `createDiskCache` */
  constructor(folder: string, options: DiskCacheOptions) {
    this.#options = options;
    this.#owner = new FolderOwner(folder, options.log);
    this.#maxFileBytes = Math.min(MAX_RESULT_PART * options.maxBytes, MAX_RESULT_FILE_BYTES);
    this.#files = new RenderingFolder(folder, {
      maxFileBytes: this.#maxFileBytes,
      stallTimeoutMs: options.stallTimeoutMs,
      onFolderRemoved: () => this.#index?.release(FOLDER_COST_BYTES),
      onFileRemoved: (path) => this.#index?.forget(path),
    });
  }

  /** Claims the folder, now or when its owner has ended; resolves when the result of the first attempt is known. */
  async open(): Promise<void> {
    await this.#owner.open(() => this.#scan());
  }

  async read(
    address: ResultAddress,
    signal: AbortSignal,
    takeRoom: (sizeBytes: number) => boolean,
  ): Promise<StoredResult | undefined> {
    signal.throwIfAborted();
    const path = storedPathOf(address);
    if (!this.#owner.isOurs || (this.#isScanned && !this.#index?.has(path))) return undefined;
    this.#index?.touch(path);
    return this.#owner.run(() => this.#files.read(address, signal, takeRoom));
  }

  async write(address: ResultAddress, result: StoredResult): Promise<void> {
    const path = storedPathOf(address);
    const index = this.#index;
    if (index === undefined || !this.#owner.isOurs || !this.#isScanned) return;
    const parts = formatResultFile(address, result);
    if (parts === undefined) return;
    const sizeBytes = parts[0].length + parts[1].length;
    if (sizeBytes <= this.#maxFileBytes)
      await this.#owner.run(() => this.#write(index, path, parts));
  }

  async remove(prefix: string): Promise<number> {
    return this.#owner.isOurs ? this.#owner.run(() => this.#files.remove(prefix)) : 0;
  }

  /** Releases the folder to other processes once running work has ended. */
  close(): void {
    this.#owner.close();
  }

  /** Returns how full the folder is; `undefined` before the scan has counted. */
  usage(): StoreUsage | undefined {
    return this.#isScanned ? this.#index?.usage : undefined;
  }

  shortcoming(): string | undefined {
    return this.#owner.shortcoming;
  }

  async #write(index: FileIndex, path: string, parts: readonly Uint8Array[]): Promise<void> {
    const costBytes = fileCostBytes(parts.reduce((sum, { length }) => sum + length, 0));
    // With all parent folders, in case that none of them exists.
    let reservedBytes = costBytes + (path.split('/').length - 1) * FOLDER_COST_BYTES;
    while (!index.tryReserve(reservedBytes)) {
      if (!(await index.evict((oldest) => this.#files.removeFile(oldest)))) return;
    }
    const onFolderMade = (): void => {
      reservedBytes -= FOLDER_COST_BYTES;
    };
    try {
      if (await this.#files.writeFile(path, parts, onFolderMade)) index.add(path, costBytes);
    } finally {
      index.release(reservedBytes);
    }
  }

  async #scan(): Promise<void> {
    const owner = this.#owner;
    const { closing: signal } = owner;
    while (!signal.aborted) {
      try {
        await this.#scanOnce(signal);
        this.#isScanned = true;
        owner.clearShortcoming();
        return;
      } catch (error) {
        if (signal.aborted) return;
        this.#index = undefined;
        owner.noteShortcoming(UNREADABLE, error);
        await owner.rest();
      }
    }
  }

  async #scanOnce(signal: AbortSignal): Promise<void> {
    const { log, maxBytes } = this.#options;
    const files = this.#files;
    const onCounted = (index: FileIndex): void => {
      this.#index = index;
    };
    const release = await files.takeTurn(signal);
    try {
      await files.removeAbandoned(signal);
      await scanFolder({ files, maxBytes, log, signal, onCounted });
    } finally {
      release();
    }
  }
}

/**
 * Opens a folder as a store and begins to scan it, unless another process owns it.
 *
 * @throws Error if the path cannot be created or read, or is not a folder
 */
export async function createDiskCache(options: DiskCacheOptions): Promise<DiskCache> {
  const folder = await openRenderingFolder(options.folder);
  await makeFolder(join(folder, 'owner'), folder);
  if (await isOnNetwork(folder)) {
    options.log.warn(
      { folder },
      'the folder of the result store is on a network file system, where other hosts are not noticed; give each host a folder of its own, or use RESULT_STORE=s3',
    );
  }
  const cache = new DiskCache(folder, options);
  await cache.open();
  return cache;
}

/**
 * Opens a folder beside the service that owns it, to check whether a rendering can be written, read and removed:
 * without its lock, its bound and its evictions.
 *
 * @throws Error if the path cannot be created or read, or is not a folder
 */
export async function openFolderBeside({
  folder,
  maxBytes,
}: Pick<DiskCacheOptions, 'folder' | 'maxBytes'>): Promise<ResultStore> {
  return new RenderingFolder(await openRenderingFolder(folder), { maxFileBytes: maxBytes });
}
