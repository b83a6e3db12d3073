import { realpath, stat } from 'node:fs/promises';
import { normalize, sep } from 'node:path';

/** The folder that all originals are below, by its real path. */
export class RootFolder {
  readonly path: string;
  /** What stands before every key: the path with one separator behind it. */
  readonly #prefix: string;

  private constructor(path: string) {
    this.path = path;
    this.#prefix = path.endsWith(sep) ? path : path + sep;
  }

  /** @throws Error if there is no such folder */
  static async open(folder: string): Promise<RootFolder> {
    const path = await realpath(folder);
    if (!(await stat(path)).isDirectory()) throw new Error(`${path} is not a folder`);
    return new RootFolder(path);
  }

  /** Path of a key; `undefined` for one that is not written straight (`..`, `.`, two slashes): a file has one key. */
  pathOf(key: string): string | undefined {
    const path = this.#prefix + key;
    return normalize(path) === path ? path : undefined;
  }
}
