import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../pipeline/ports.ts';
import { claimFolder, type FolderClaim } from './folder-lock.ts';

/** Delay before a failed claim or scan is retried, in milliseconds. */
const RETRY_AFTER_MS = 60_000;

const TAKEN = 'another process owns the folder of the result store; renderings are not stored';
const UNCLAIMED = 'the folder of the result store cannot be locked; renderings are not stored';

/**
 * Ownership of a folder by this process: now, or when the current owner has ended. `close` releases the folder once the
 * work in it has ended.
 */
export class FolderOwner {
  readonly #folder: string;
  readonly #log: Log;
  readonly #closing = new AbortController();
  #claim: FolderClaim | undefined;
  #shortcoming: string | undefined;
  /** Number of running tasks in the folder. */
  #running = 0;

  /** @param folder a real path; its `owner/` must exist */
  constructor(folder: string, log: Log) {
    this.#folder = folder;
    this.#log = log;
  }

  /** Whether the folder is ours, and stays so for work that begins now. */
  get isOurs(): boolean {
    return this.#claim?.kind === 'owned' && !this.#closing.signal.aborted;
  }

  /** Reason why nothing is stored, as in the log; `undefined` if all is well. */
  get shortcoming(): string | undefined {
    return this.#shortcoming;
  }

  /** Aborts when the folder is to be released. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /**
   * Claims the folder; resolves when the result of the first attempt is known, and retries after a failure.
   *
   * @param onOwned begins the work of the owner
   */
  async open(onOwned: () => Promise<void>): Promise<void> {
    const wait = await this.#tryToOwn(onOwned);
    void wait?.().then(() => this.open(onOwned));
  }

  /** Runs work that must end before another process may own the folder. */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#running += 1;
    try {
      return await work();
    } finally {
      this.#running -= 1;
      this.#releaseIfIdle();
    }
  }

  /** Logs once why nothing is stored. */
  noteShortcoming(shortcoming: string, error?: unknown): void {
    if (this.#shortcoming === shortcoming) return;
    this.#shortcoming = shortcoming;
    const details = { folder: this.#folder, ...(error !== undefined && { err: error }) };
    this.#log.warn(details, shortcoming);
  }

  clearShortcoming(): void {
    this.#shortcoming = undefined;
  }

  /** Waits before the next attempt, or until `close`. */
  async rest(): Promise<void> {
    const { signal } = this.#closing;
    await sleep(RETRY_AFTER_MS, undefined, { ref: false, signal }).catch(() => undefined);
  }

  /** Releases the folder to other processes once running work has ended. */
  close(): void {
    this.#closing.abort();
    this.#releaseIfIdle();
  }

  /** @returns a function that waits for the next attempt; `undefined` without a further attempt */
  async #tryToOwn(onOwned: () => Promise<void>): Promise<(() => Promise<void>) | undefined> {
    const { signal } = this.#closing;
    if (signal.aborted) return undefined;
    try {
      const claim = await claimFolder(join(this.#folder, 'owner'));
      this.#claim = claim;
      this.#releaseIfIdle();
      if (signal.aborted) return undefined; // closed meanwhile
      if (claim.kind === 'taken') {
        this.noteShortcoming(TAKEN);
        return () => claim.ended;
      }
      if (this.#shortcoming !== undefined) {
        this.#log.info({}, 'the folder of the result store is ours; renderings are stored');
      }
      this.clearShortcoming();
      void this.run(onOwned);
      return undefined;
    } catch (error) {
      if (signal.aborted) return undefined;
      this.noteShortcoming(UNCLAIMED, error);
      return () => this.rest();
    }
  }

  #releaseIfIdle(): void {
    if (this.#running > 0 || !this.#closing.signal.aborted) return;
    this.#claim?.release();
    this.#claim = undefined;
  }
}
