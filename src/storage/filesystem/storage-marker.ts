import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCodeOf } from './system-errors.ts';

/**
 * A file that tells that the folder of the originals is the one that is meant (`STORAGE_MARKER`): where a disk is
 * not mounted, an empty folder is in its place, and every original would seem to be missing.
 */
export class StorageMarker {
  readonly #path: string;
  #isMissing = false;
  #isLooking = false;

  /**
   * @param folder of the originals
   * @param name of the file, below it
   */
  constructor(folder: string, name: string) {
    this.#path = join(folder, name);
  }

  /** Whether it was not there when it was last looked for. */
  get isMissing(): boolean {
    return this.#isMissing;
  }

  /** Looks for it; tells whether it is there. */
  async look(): Promise<boolean> {
    // One that cannot be looked at may be there: the origin fails then, and says why.
    this.#isMissing = await stat(this.#path).then(
      (status) => !status.isFile(),
      (error: unknown) => ['ENOENT', 'ENOTDIR'].some((code) => code === systemCodeOf(error)),
    );
    return !this.#isMissing;
  }

  /** Looks for it in the background, if that is not being done: a disk that hangs takes one thread, not all. */
  lookSoon(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    void this.look().finally(() => {
      this.#isLooking = false;
    });
  }
}
