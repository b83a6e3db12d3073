import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Log, StoreUsage } from '../../pipeline/ports.ts';
import type { SweepResult, sweep } from './sweep.ts';

const SWEEP_AFTER = 0.02;

/** Maximum fraction of `maxBytes` that this process writes before a sweep: four processes stay within 1.08 of it. */
const MAX_UNSWEPT = 0.04;

const RETRY_AFTER_MS = 60_000;

const SWEEP_FILE = new URL('./sweep-thread.js', import.meta.url);

const SWEEP_MEMORY = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 32 };

/**
 * Sweeps a directory at startup, and whenever this process has written a fraction of `maxBytes`. While a sweep fails or
 * takes too long, writes stop at `MAX_UNSWEPT`.
 */
export class Sweeper {
  readonly maxUnsweptBytes: number;
  readonly #directory: string;
  readonly #maxBytes: number;
  readonly #log: Log;
  readonly #sweepFile: URL;
  readonly #closing = new AbortController();
  #isSweeping = false;
  #sweptBytes: number | undefined;
  /** Since the last sweep began. */
  #writtenBytes = 0;
  #evictions = 0;

  /** @param sweepFile by default the compiled file in this directory */
  constructor(directory: string, maxBytes: number, log: Log, sweepFile = SWEEP_FILE) {
    this.#directory = directory;
    this.#maxBytes = maxBytes;
    this.#log = log;
    this.#sweepFile = sweepFile;
    this.maxUnsweptBytes = MAX_UNSWEPT * maxBytes;
  }

  get usage(): StoreUsage | undefined {
    if (this.#sweptBytes === undefined) return undefined;
    const heldBytes = this.#sweptBytes + this.#writtenBytes;
    return { heldBytes, maxBytes: this.#maxBytes, evictions: this.#evictions };
  }

  mayWrite(costBytes: number): boolean {
    const fits = this.#writtenBytes + costBytes <= this.maxUnsweptBytes;
    if (!fits) this.add(0); // a failed sweep may be due again
    return fits;
  }

  add(costBytes: number): void {
    this.#writtenBytes += costBytes;
    const isDue = this.#writtenBytes > SWEEP_AFTER * this.#maxBytes;
    if (isDue && !this.#isSweeping && !this.#closing.signal.aborted) void this.sweep();
  }

  /** Starts a sweep in the background that evicts renderings even within `maxBytes`, because the disk is full. */
  makeRoom(): void {
    if (this.#isSweeping || this.#closing.signal.aborted) return;
    this.#log.warn({ folder: this.#directory }, 'result store disk full; evicting renderings');
    void this.sweep({ isDiskFull: true });
  }

  /** Delays the next attempt after a failure, or if a full disk had no renderings. Never rejects. */
  async sweep({ isDiskFull = false } = {}): Promise<void> {
    const [directory, log] = [this.#directory, this.#log];
    const { signal } = this.#closing;
    this.#isSweeping = true;
    const coveredBytes = this.#writtenBytes;
    const startedMs = performance.now();
    try {
      const { files, heldBytes, evictions, unrecognized, failure } =
        await this.#runThread(isDiskFull);
      this.#sweptBytes = heldBytes;
      this.#evictions += evictions;
      this.#writtenBytes -= coveredBytes;
      const durationMs = Math.round(performance.now() - startedMs);
      log.info(
        { files, foreign: unrecognized, evictions, heldBytes, durationMs },
        'result store swept',
      );
      if (failure !== undefined) {
        log.warn(
          { folder: directory, reason: failure },
          'part of the result store could not be swept',
        );
      }
      if (isDiskFull && evictions === 0) await this.#waitToRetry();
    } catch (error) {
      if (signal.aborted) return;
      log.warn({ err: error, folder: directory }, 'result store could not be swept');
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

  /** Sweeps in a separate thread, so that a hanging disk does not block the shared threads of file access. */
  async #runThread(isDiskFull: boolean): Promise<SweepResult> {
    const workerData: Parameters<typeof sweep>[0] = {
      directory: this.#directory,
      maxBytes: this.#maxBytes,
      isDiskFull,
    };
    const thread = new Worker(this.#sweepFile, { workerData, resourceLimits: SWEEP_MEMORY });
    thread.unref();
    try {
      const [swept] = await once(thread, 'message', { signal: this.#closing.signal });
      return swept;
    } finally {
      void thread.terminate();
    }
  }
}
