import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../pipeline/ports.ts';
import { claimFolder, type FolderClaim } from './folder-lock.ts';

/** Time after which a folder that cannot be claimed or scanned is tried again, in milliseconds. */
const RETRY_AFTER_MS = 60_000;

const TAKEN = 'another process owns the folder of the result store; renderings are not stored';
const UNCLAIMED = 'the folder of the result store cannot be locked; renderings are not stored';

/**
 * This process as the owner of a folder: now, or when the process that owns it has ended. The folder is given
 * back when it is closed and the work in it has ended.
 */
export class FolderOwner {
  readonly #folder: string;
  readonly #log: Log;
  readonly #closing = new AbortController();
  #claim: FolderClaim | undefined;
  #shortcoming: string | undefined;
  /** Work in the folder under way. */
  #running = 0;

  /** @param folder a real path; its `owner/` must exist */
  constructor(folder: string, log: Log) {
    this.#folder = folder;
    this.#log = log;
  }

  /** Whether the folder is ours, and stays so for the work that begins now. */
  get isOurs(): boolean {
    return this.#claim?.kind === 'owned' && !this.#closing.signal.aborted;
  }

  /** Why nothing is stored, as the log has it; `undefined` where all is well. */
  get shortcoming(): string | undefined {
    return this.#shortcoming;
  }

  /** Aborts when the folder is to be given back. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /**
   * Claims the folder; resolves when it is known whether that is possible now. If not, it goes on trying.
   *
   * @param onOwned begins the work of the owner
   */
  async open(onOwned: () => Promise<void>): Promise<void> {
    const wait = await this.#tryToOwn(onOwned);
    void wait?.().then(() => this.open(onOwned));
  }

  /** Does something that must have ended before the folder is another's. */
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

  /** Waits before the next try; less long where the folder is given back meanwhile. */
  async rest(): Promise<void> {
    const { signal } = this.#closing;
    await sleep(RETRY_AFTER_MS, undefined, { ref: false, signal }).catch(() => undefined);
  }

  /** Gives the folder to others, when the work under way has ended. */
  close(): void {
    this.#closing.abort();
    this.#releaseIfIdle();
  }

  /** @returns how to wait for the next try; `undefined` where there is none to come */
  async #tryToOwn(onOwned: () => Promise<void>): Promise<(() => Promise<void>) | undefined> {
    const { signal } = this.#closing;
    if (signal.aborted) return undefined;
    try {
      const claim = await claimFolder(join(this.#folder, 'owner'));
      this.#claim = claim;
      this.#releaseIfIdle();
      if (signal.aborted) return undefined; // given up meanwhile
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
