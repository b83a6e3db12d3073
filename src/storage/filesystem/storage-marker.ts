import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCodeOf } from './system-errors.ts';

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
