import { realpath, stat } from 'node:fs/promises';
import { join, normalize, sep } from 'node:path';
import { systemCodeOf } from './system-errors.ts';

/** Longest name of a file on the usual file systems, in bytes. */
const MAX_NAME_BYTES = 255;

/** The folder of all originals, or of uploads, by its real path. */
export class RootFolder {
  readonly path: string;
  readonly #prefix: string;
  readonly #marker: StorageMarker | undefined;

  private constructor(path: string, marker: StorageMarker | undefined) {
    this.path = path;
    this.#prefix = path.endsWith(sep) ? path : path + sep;
    this.#marker = marker;
  }

  /**
   * @param marker must exist, or else no original counts as missing, and none is written
   * @throws Error if the folder is missing
   */
  static async open(folder: string, marker?: StorageMarker): Promise<RootFolder> {
    const path = await realpath(folder);
    if (!(await stat(path)).isDirectory()) throw new Error(`${path} is not a folder`);
    return new RootFolder(path, marker);
  }

  /** Returns the path of a key; `undefined` unless it is normalized (no `..`, `.`, two slashes): a file has one key. */
  pathOf(key: string): string | undefined {
    const isLong = Buffer.byteLength(key) > MAX_NAME_BYTES;
    const path = this.#prefix + (isLong ? key.split('/').map(splitName).join('/') : key);
    return normalize(path) === path ? path : undefined;
  }

  /** Whether the folder exists, with its marker if it has one: an unmounted disk is a failure, and not an empty one. */
  async isMounted(): Promise<boolean> {
    const isFolder = await stat(this.path).then(
      (status) => status.isDirectory(),
      () => false,
    );
    return isFolder && ((await this.#marker?.check()) ?? true);
  }
}

/**
 * Splits a segment of a key that is longer than a name can be, as those of uploads may be, into folders and a file. Their
 * names begin with a backslash, which no key contains, and all but the last end with one.
 */
function splitName(segment: string): string {
  if (Buffer.byteLength(segment) <= MAX_NAME_BYTES) return segment;
  let path = '\\';
  let nameBytes = 2;
  for (const character of segment) {
    const bytes = Buffer.byteLength(character);
    if (nameBytes + bytes > MAX_NAME_BYTES) {
      path += '\\/\\';
      nameBytes = 2;
    }
    path += character;
    nameBytes += bytes;
  }
  return path;
}

/**
 * A file that identifies the folder of the originals (`STORAGE_MARKER`): without it, an unmounted disk would look like
 * an empty folder, and every original would seem to be missing.
 */
export class StorageMarker {
  readonly #path: string;
  #isMissing = false;
  #isChecking = false;

  constructor(folder: string, name: string) {
    this.#path = join(folder, name);
  }

  get isMissing(): boolean {
    return this.#isMissing;
  }

  async check(): Promise<boolean> {
    // A file that cannot be checked may exist: the origin then fails, and says why.
    this.#isMissing = await stat(this.#path).then(
      (status) => !status.isFile(),
      (error: unknown) => ['ENOENT', 'ENOTDIR'].some((code) => code === systemCodeOf(error)),
    );
    return !this.#isMissing;
  }

  /** Checks the file in the background, unless a check is running: a hanging disk takes one thread, not all. */
  checkInBackground(): void {
    if (this.#isChecking) return;
    this.#isChecking = true;
    void this.check().finally(() => {
      this.#isChecking = false;
    });
  }
}
