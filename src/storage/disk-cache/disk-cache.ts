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

/** What a store of renderings on a disk is made from. */
export interface DiskCacheOptions {
  /** Of its own. It is made if it is missing. */
  readonly folder: string;
  /** Of disk, in bytes, counted in whole blocks, folders included. */
  readonly maxBytes: number;
  readonly log: Log;
  /** Time for each step of a removal, in milliseconds. */
  readonly stallTimeoutMs?: number;
}

/**
 * Largest rendering that is kept, as a part of the whole: one must not drive out many others.
 */
const MAX_RESULT_PART = 0.05;

const UNREADABLE = 'the folder of the result store cannot be read; renderings are not stored';

/**
 * Renderings in a folder (`RenderingFolder`) that one process owns (`FolderOwner`), and never more than its
 * bound: an index in memory (`FileIndex`) knows them all, and what was not used for longest goes before
 * something new is written. What finds no room all the same is not kept, and that is no error: a full disk costs
 * new renderings, never those that are there.
 *
 * Where another process owns the folder, the store is as good as none: it finds nothing, keeps nothing and
 * removes nothing. When the owner has ended, however it has, the folder is taken over at once.
 *
 * The index is made by one scan, when the folder is ours; no request waits for it. Until it is done, a rendering is
 * read by its path, removals work, and nothing is written, since nothing is known of the room.
 *
 * Not covered: files that are put into the folder or removed from it behind the back of its owner. The latter are
 * counted until it is their turn to go; the former are found by the next scan.
 */
export class DiskCache implements ResultStore {
  readonly #options: DiskCacheOptions;
  readonly #files: RenderingFolder;
  readonly #maxFileBytes: number;
  readonly #owner: FolderOwner;
  /** From when all files are counted. */
  #index: FileIndex | undefined;
  /** Whether the index knows them all by name. */
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

  /** Begins to own the folder, now or when its owner has ended; resolves when that is known. */
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

  /** Gives the folder to others, when what is under way has ended. */
  close(): void {
    this.#owner.close();
  }

  /** How full the folder is; `undefined` before it is known. */
  usage(): StoreUsage | undefined {
    return this.#isScanned ? this.#index?.usage : undefined;
  }

  shortcoming(): string | undefined {
    return this.#owner.shortcoming;
  }

  async #write(index: FileIndex, path: string, parts: readonly Uint8Array[]): Promise<void> {
    const costBytes = fileCostBytes(parts.reduce((sum, { length }) => sum + length, 0));
    // With all folders on the way, should none of them be there.
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
    const leave = await files.takeTurn(signal);
    try {
      await files.removeAbandoned(signal);
      await scanFolder({ files, maxBytes, log, signal, onCounted });
    } finally {
      leave();
    }
  }
}

/**
 * Opens a folder as a store and begins to scan it, where no other process owns it.
 *
 * @throws Error if the folder cannot be made or read, or is no folder
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
 * Opens a folder beside the service that owns it, to look whether a rendering can be written, read and
 * removed: without its lock, its bound and its evictions.
 *
 * @throws Error if the folder cannot be made or read, or is no folder
 */
export async function openFolderBeside({
  folder,
  maxBytes,
}: Pick<DiskCacheOptions, 'folder' | 'maxBytes'>): Promise<ResultStore> {
  return new RenderingFolder(await openRenderingFolder(folder), { maxFileBytes: maxBytes });
}
