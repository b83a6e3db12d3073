import { realpath, stat } from 'node:fs/promises';
import { normalize, sep } from 'node:path';

/** The folder of all originals, by its real path. */
export class RootFolder {
  readonly path: string;
  /** Prefix of the path of every key: the folder with one trailing separator. */
  readonly #prefix: string;

  private constructor(path: string) {
    this.path = path;
    this.#prefix = path.endsWith(sep) ? path : path + sep;
  }

  /** @throws Error if the folder is missing */
  static async open(folder: string): Promise<RootFolder> {
    const path = await realpath(folder);
    if (!(await stat(path)).isDirectory()) throw new Error(`${path} is not a folder`);
    return new RootFolder(path);
  }

  /** Returns the path of a key; `undefined` unless it is normalized (no `..`, `.`, two slashes): a file has one key. */
  pathOf(key: string): string | undefined {
    const path = this.#prefix + key;
    return normalize(path) === path ? path : undefined;
  }
}
