import { MediaError } from '../../contract/errors.ts';
import { PIPELINE_RELEASE } from '../../contract/pipeline-release.ts';
import { withDeadline } from '../abort.ts';
import type { Meter } from '../meter.ts';
import {
  type Clock,
  type Log,
  type MediaResult,
  type ResultAddress,
  type ResultCache,
  type ResultStore,
  type StoredResult,
  StoreStalled,
} from '../ports.ts';
import type { RequestTrace } from '../request-trace.ts';
import { Semaphore } from '../semaphore.ts';
import { resultPath } from './result-path.ts';
import { ResultWriter, type WriteCounters } from './write-behind.ts';

/** Where finished answers are kept. */
export interface ResultsParts {
  readonly cache: ResultCache;
  /** `undefined`: nothing outlives the process. */
  readonly store: ResultStore | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter?: Pick<Meter, 'lookUps'>;
  /** How long a removal waits for the writes under way, in milliseconds. */
  readonly settleTimeoutMs?: number;
}

/** Which rendering is meant; the release is ours. */
export type RenderingOf = Omit<ResultAddress, 'release'>;

/** Reads from the store at the same time. */
const MAX_READS = 16;

/** Bytes of the bodies that these may read together; a larger one is read by itself. */
const MAX_READING_BYTES = 128 * 1024 * 1024;

/** Longest wait for the store, in milliseconds: to render anew takes less. */
const READ_TIMEOUT_MS = 2_000;

/** How long a store that has failed is not asked, in milliseconds. */
const FAILED_FOR_MS = 5_000;

/** Longer than the store of S3 gives a write, which bounds itself; a disk that hangs does not. */
const SETTLE_TIMEOUT_MS = 15_000;

/** Removals at a time, those that wait for them, and for how long, in milliseconds: some take minutes. */
const REMOVALS = { slots: 2, maxWaiting: 64, maxWaitMs: 60_000 } as const;

/** How long a stop waits for the store, in milliseconds. */
const FLUSH_TIMEOUT_MS = 5_000;

/** Finished answers: in memory, and behind that in a store that outlives the process, if there is one. */
export class Results {
  readonly #parts: ResultsParts;
  readonly #writer: ResultWriter | undefined;
  /** A body read from the store is in memory before anybody has made room for it. */
  readonly #gate = new Semaphore({
    slots: MAX_READS,
    maxWaiting: 1_024,
    maxWaitMs: READ_TIMEOUT_MS,
  });
  readonly #removalGate = new Semaphore(REMOVALS);
  #readingBytes = 0;
  #failedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(parts: ResultsParts) {
    this.#parts = parts;
    const { store, log } = parts;
    this.#writer = store && new ResultWriter({ store, log });
  }

  /** Whether renderings may be found that this process has not made. */
  get isPersistent(): boolean {
    return this.#parts.store !== undefined;
  }

  /** Whether the store has failed lately, and is left alone. */
  get isStoreFailing(): boolean {
    return this.#parts.clock.nowMs() < this.#failedUntilMs;
  }

  /** What became of renderings that were to be stored; `undefined` where there is no store. */
  get writes(): WriteCounters | undefined {
    return this.#writer?.counters;
  }

  /** An answer in memory, of whatever state of its original. */
  get(key: string): MediaResult | undefined {
    return this.#parts.cache.get(key);
  }

  /**
   * Looks a rendering up in the store. A store that fails, or takes too long, has none.
   *
   * @throws `signal.reason`
   */
  async find(rendering: RenderingOf, signal: AbortSignal): Promise<StoredResult | undefined> {
    const { store, clock, log, meter } = this.#parts;
    if (store === undefined || clock.nowMs() < this.#failedUntilMs) return undefined;
    const address = { ...rendering, release: PIPELINE_RELEASE };
    const leave = await this.#gate.enter(signal).catch((error: unknown) => {
      signal.throwIfAborted();
      // To wait longer for it than for a render makes no sense.
      if (error instanceof MediaError) return undefined;
      throw error;
    });
    if (leave === undefined) return undefined;
    const onTimeout = (): Error => new Error(`No answer within ${READ_TIMEOUT_MS} ms.`);
    let takenBytes = 0;
    const takeRoom = (sizeBytes: number): boolean => {
      const isRoom =
        this.#readingBytes === 0 || this.#readingBytes + sizeBytes <= MAX_READING_BYTES;
      if (!isRoom) return false;
      takenBytes += sizeBytes;
      this.#readingBytes += sizeBytes;
      return true;
    };
    try {
      const found = await withDeadline(READ_TIMEOUT_MS, signal, onTimeout, (within) =>
        store.read(address, within, takeRoom),
      );
      if (meter !== undefined) meter.lookUps.store[found === undefined ? 'missed' : 'found'] += 1;
      return found;
    } catch (error) {
      signal.throwIfAborted();
      this.#failedUntilMs = clock.nowMs() + FAILED_FOR_MS;
      log.warn({ err: error, path: resultPath(address) }, 'the result store has failed');
      return undefined;
    } finally {
      this.#readingBytes -= takenBytes;
      leave();
    }
  }

  /** Keeps an answer in memory; tells whether it did. */
  keep(key: string, result: MediaResult): boolean {
    return this.#parts.cache.set(key, result);
  }

  /**
   * Stores a rendering, later.
   *
   * @param trace of the request that it was made for
   */
  store(rendering: RenderingOf, result: StoredResult, trace: RequestTrace): void {
    this.#writer?.add({ ...rendering, release: PIPELINE_RELEASE }, result, trace);
  }

  /** Removes answers from memory; tells how many. */
  forget(fits: (key: string) => boolean): number {
    return this.#parts.cache.deleteWhere(fits);
  }

  /**
   * Removes renderings from the store, those included that are on their way there.
   *
   * @param prefixes of their paths
   * @param fits whether a rendering that is still to be stored must not be
   * @returns how many were removed
   * @throws Error if the store fails, `StoreStalled` if it does not answer; MediaError `OVERLOADED` if other removals
   *   take too long
   */
  async removeStored(
    prefixes: readonly string[],
    fits: (originKey: string) => boolean,
  ): Promise<number> {
    const { store } = this.#parts;
    if (store === undefined) return 0;
    this.#writer?.drop(({ originKey }) => fits(originKey));
    const { signal } = new AbortController();
    await this.#settleWrites(signal);
    const leave = await this.#removalGate.enter(signal);
    try {
      let removed = 0;
      for (const prefix of prefixes) removed += await store.remove(prefix);
      return removed;
    } finally {
      leave();
    }
  }

  /** Waits until what was to be stored is, where the store is not too slow for that. */
  async flush(): Promise<void> {
    await this.#writer?.flush(FLUSH_TIMEOUT_MS);
  }

  /** One that is under way might end after the removal. */
  async #settleWrites(signal: AbortSignal): Promise<void> {
    const { settleTimeoutMs = SETTLE_TIMEOUT_MS } = this.#parts;
    const onTimeout = (): Error =>
      new StoreStalled(`Writes have not ended within ${settleTimeoutMs} ms.`);
    await withDeadline(settleTimeoutMs, signal, onTimeout, async () => this.#writer?.settle());
  }
}
