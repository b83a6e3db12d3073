import { realpath, stat } from 'node:fs/promises';
import { join, normalize, sep } from 'node:path';
import { systemCodeOf } from './system-errors.ts';

/** The folder of all originals, by its real path. */
export class RootFolder {
  readonly path: string;
  /** Prefix of the path of every key: the folder with one trailing separator. */
  readonly #prefix: string;
  readonly #marker: StorageMarker | undefined;

  private constructor(path: string, marker: StorageMarker | undefined) {
    this.path = path;
    this.#prefix = path.endsWith(sep) ? path : path + sep;
    this.#marker = marker;
  }

  /** @throws Error if the folder is missing */
  static async open(folder: string, marker?: StorageMarker): Promise<RootFolder> {
    const path = await realpath(folder);
    if (!(await stat(path)).isDirectory()) throw new Error(`${path} is not a folder`);
    return new RootFolder(path, marker);
  }

  /** Returns the path of a key; `undefined` unless it is normalized (no `..`, `.`, two slashes): a file has one key. */
  pathOf(key: string): string | undefined {
    const path = this.#prefix + key;
    return normalize(path) === path ? path : undefined;
  }

  /** Whether the folder exists, with its marker if it has one: an unmounted disk is a failure, and not an empty one. */
  async isThere(): Promise<boolean> {
    const isFolder = await stat(this.path).then(
      (status) => status.isDirectory(),
      () => false,
    );
    return isFolder && ((await this.#marker?.look()) ?? true);
  }
}

/**
 * A file that identifies the folder of the originals (`STORAGE_MARKER`): without it, an unmounted disk would look like
 * an empty folder, and every original would seem to be missing.
 */
export class StorageMarker {
  readonly #path: string;
  #isMissing = false;
  #isLooking = false;

  /**
   * @param folder of the originals
   * @param name of the file, below the folder
   */
  constructor(folder: string, name: string) {
    this.#path = join(folder, name);
  }

  /** Whether the latest check found the file missing. */
  get isMissing(): boolean {
    return this.#isMissing;
  }

  /** Checks the file, and returns whether it exists. */
  async look(): Promise<boolean> {
    // A file that cannot be checked may exist: the origin then fails, and says why.
    this.#isMissing = await stat(this.#path).then(
      (status) => !status.isFile(),
      (error: unknown) => ['ENOENT', 'ENOTDIR'].some((code) => code === systemCodeOf(error)),
    );
    return !this.#isMissing;
  }

  /** Checks the file in the background, unless a check is running: a hanging disk takes one thread, not all. */
  lookSoon(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    void this.look().finally(() => {
      this.#isLooking = false;
    });
  }
}
