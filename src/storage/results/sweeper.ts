import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Log, StoreUsage } from '../../pipeline/ports.ts';
import type { SweepOrder, Swept } from './sweep.ts';

/** Options of the sweeps of a folder. */
export interface SweeperOptions {
  readonly folder: string;
  /** Bound of the disk space in bytes, counted in whole blocks, folders included. */
  readonly maxBytes: number;
  readonly log: Log;
  /** Program of the sweeping thread; by default the compiled file beside this one. */
  readonly sweepFile?: URL;
}

/** Part of the bound that this process writes between two sweeps. */
const SWEEP_AFTER = 0.02;

/**
 * Most that this process writes between sweeps, as a part of the bound, besides concurrent writes: four processes stay
 * within 1.08 of it.
 */
const MAX_UNSWEPT = 0.04;

const RETRY_AFTER_MS = 60_000;

const SWEEP_FILE = new URL('./sweep-thread.js', import.meta.url);

/** Memory of the sweeping thread, in MiB: it holds little, and its garbage is short-lived. */
const SWEEP_MEMORY = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 32 };

/**
 * Sweeps of a folder by this process: after its start, and whenever it has written a part of the bound. While a sweep
 * fails or takes too long, nothing more is written than `MAX_UNSWEPT`.
 */
export class Sweeper {
  readonly maxUnsweptBytes: number;
  readonly #options: SweeperOptions;
  readonly #closing = new AbortController();
  #isSweeping = false;
  #sweptBytes: number | undefined;
  /** Disk space that this process has written since that sweep began. */
  #writtenBytes = 0;
  #evictions = 0;

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.maxUnsweptBytes = MAX_UNSWEPT * options.maxBytes;
  }

  get usage(): StoreUsage | undefined {
    if (this.#sweptBytes === undefined) return undefined;
    const heldBytes = this.#sweptBytes + this.#writtenBytes;
    return { heldBytes, maxBytes: this.#options.maxBytes, evictions: this.#evictions };
  }

  /** Whether a write may begin; if not, a sweep has to come first. */
  mayWrite(costBytes: number): boolean {
    const fits = this.#writtenBytes + costBytes <= this.maxUnsweptBytes;
    if (!fits) this.add(0); // a failed sweep may be due again
    return fits;
  }

  /** Adds disk space that is written; begins a sweep in the background when it is due. */
  add(costBytes: number): void {
    this.#writtenBytes += costBytes;
    const isDue = this.#writtenBytes > SWEEP_AFTER * this.#options.maxBytes;
    if (isDue && !this.#isSweeping && !this.#closing.signal.aborted) void this.sweep();
  }

  /** Begins a sweep in the background that evicts renderings even within the bound, since the disk is full. */
  makeRoom(): void {
    if (this.#isSweeping || this.#closing.signal.aborted) return;
    const { folder, log } = this.#options;
    log.warn({ folder }, 'the disk of the result store is full; evicting renderings');
    void this.sweep({ isDiskFull: true });
  }

  /**
   * Sweeps the folder; after a failure, or if nothing could be evicted from a full disk, waits before the next attempt
   * may begin. Never rejects.
   */
  async sweep({ isDiskFull = false } = {}): Promise<void> {
    const { folder, log } = this.#options;
    const { signal } = this.#closing;
    this.#isSweeping = true;
    const coveredBytes = this.#writtenBytes;
    const startedMs = performance.now();
    try {
      const { files, heldBytes, evictions, foreign, fault } = await this.#runThread(isDiskFull);
      this.#sweptBytes = heldBytes;
      this.#evictions += evictions;
      this.#writtenBytes -= coveredBytes;
      const durationMs = Math.round(performance.now() - startedMs);
      log.info({ files, foreign, evictions, heldBytes, durationMs }, 'result store swept');
      if (fault !== undefined) {
        log.warn({ folder, reason: fault }, 'a part of the result store cannot be swept');
      }
      if (isDiskFull && evictions === 0) await this.#waitToRetry();
    } catch (error) {
      if (signal.aborted) return;
      log.warn({ err: error, folder }, 'the folder of the result store cannot be swept');
      await this.#waitToRetry();
    } finally {
      this.#isSweeping = false;
    }
  }

  close(): void {
    this.#closing.abort();
  }

  async #waitToRetry(): Promise<void> {
    const { signal } = this.#closing;
    await sleep(RETRY_AFTER_MS, undefined, { ref: false, signal }).catch(() => undefined);
  }

  /** Sweeps in a thread: a disk that hangs then blocks none of those that all file access shares. */
  async #runThread(isDiskFull: boolean): Promise<Swept> {
    const { folder, maxBytes, sweepFile = SWEEP_FILE } = this.#options;
    const workerData: SweepOrder = { folder, maxBytes, isDiskFull };
    const thread = new Worker(sweepFile, { workerData, resourceLimits: SWEEP_MEMORY });
    thread.unref();
    try {
      const [swept] = await once(thread, 'message', { signal: this.#closing.signal });
      return swept;
    } finally {
      void thread.terminate();
    }
  }
}
