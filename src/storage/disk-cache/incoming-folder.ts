import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { walkFolder } from '../filesystem/folder-walk.ts';
import { GentlePace } from '../filesystem/throttle.ts';
import { systemCodeOf } from '../missing-file.ts';

/** Age from which a file belongs to a process that has died, in milliseconds; a write takes seconds. */
const ABANDONED_AFTER_MS = 60 * 60 * 1000;

/** A folder of files that are being written, by any number of processes. */
export class IncomingFolder {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Writes a file under a name that nobody else has, down to the disk.
   *
   * @returns its path; it is the caller's to move or to remove
   * @throws Error of a system call; then nothing is left of the file
   */
  async write(parts: readonly Uint8Array[]): Promise<string> {
    const path = join(this.#folder, randomBytes(16).toString('hex'));
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
    const flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    const file = await open(path, flags).catch(async (error: unknown) => {
      if (systemCodeOf(error) !== 'ENOENT') throw error;
      await mkdir(this.#folder); // removed behind our back
      return open(path, flags);
    });
    try {
      try {
        for (const part of parts) await file.writeFile(part);
        // Before it gets its name: after a power cut there would be the name, and zeros.
        await file.datasync();
      } finally {
        await file.close();
      }
      return path;
    } catch (error) {
      await this.discard(path);
      throw error;
    }
  }

  /** Removes a file of `write`, or leaves it to `removeAbandoned`. */
  async discard(path: string): Promise<void> {
    await unlink(path).catch(() => undefined);
  }

  /**
   * Removes what dead processes left behind.
   *
   * @throws Error of a system call other than a removal; `signal.reason`
   */
  async removeAbandoned(signal: AbortSignal): Promise<void> {
    const beforeMs = Date.now() - ABANDONED_AFTER_MS;
    const file = async (path: string, _sizeBytes: number, mtimeMs: number): Promise<void> => {
      if (mtimeMs < beforeMs) await this.discard(path);
    };
    await walkFolder(this.#folder, { file }, { signal, pace: new GentlePace() });
  }
}
