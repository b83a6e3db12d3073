import { realpath, stat } from 'node:fs/promises';
import { join, normalize, sep } from 'node:path';
import { systemCodeOf } from './files.ts';

const MAX_NAME_BYTES = 255;

export class RootDirectory {
  readonly path: string;
  readonly #prefix: string;
  readonly #marker: StorageMarker | undefined;

  private constructor(path: string, marker: StorageMarker | undefined) {
    this.path = path;
    this.#prefix = path.endsWith(sep) ? path : path + sep;
    this.#marker = marker;
  }

  /** @throws Error if the directory is missing; the marker may appear later */
  static async open(directory: string, marker?: StorageMarker): Promise<RootDirectory> {
    const path = await realpath(directory);
    if (!(await stat(path)).isDirectory()) throw new Error(`${path} is not a directory`);
    return new RootDirectory(path, marker);
  }

  /** Returns `undefined` unless the path is normalized (no `..`, `.`, `//`), so that a file has one key. */
  pathOf(key: string): string | undefined {
    const isLong = Buffer.byteLength(key) > MAX_NAME_BYTES;
    const path = this.#prefix + (isLong ? key.split('/').map(splitName).join('/') : key);
    return normalize(path) === path ? path : undefined;
  }

  /** Whether the directory and its marker exist: an unmounted disk is a failure, not an empty directory. */
  async isMounted(): Promise<boolean> {
    const isDirectory = await stat(this.path).then(
      (status) => status.isDirectory(),
      () => false,
    );
    return isDirectory && ((await this.#marker?.check()) ?? true);
  }
}

/**
 * Splits a segment of an upload's key that is too long for a file name into directories and a file. Their names begin
 * with a backslash, which no key contains, and all except the last end with one.
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

/** File that identifies the originals (`STORAGE_MARKER`): an unmounted disk would look like an empty directory. */
export class StorageMarker {
  readonly #path: string;
  #isMissing = false;
  #isChecking = false;

  constructor(directory: string, name: string) {
    this.#path = join(directory, name);
  }

  get isMissing(): boolean {
    return this.#isMissing;
  }

  async check(): Promise<boolean> {
    // Other errors do not prove that the file is missing; the origin reports them.
    this.#isMissing = await stat(this.#path).then(
      (status) => !status.isFile(),
      (error: unknown) => ['ENOENT', 'ENOTDIR'].some((code) => code === systemCodeOf(error)),
    );
    return !this.#isMissing;
  }

  /** Checks the file in the background, one check at a time, so that a hanging disk blocks only one thread. */
  checkInBackground(): void {
    if (this.#isChecking) return;
    this.#isChecking = true;
    void this.check().finally(() => {
      this.#isChecking = false;
    });
  }
}
