import { MediaError } from '../../contract/errors.ts';
import { withDeadline } from '../abort.ts';
import type { Meter } from '../meter.ts';
import {
  type Clock,
  type Log,
  type ResultAddress,
  type ResultStore,
  type StoredResult,
  StoreFailed,
  StoreStalled,
} from '../ports.ts';
import type { RequestTrace } from '../request-trace.ts';
import { Semaphore } from '../semaphore.ts';
import { resultPath } from './result-path.ts';

/** Parts that a store is guarded with. */
export interface GuardedStoreParts {
  readonly store: ResultStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Pick<Meter, 'count'>;
  /** Longest time that a removal waits for the writes under way, in milliseconds. */
  readonly settleTimeoutMs?: number;
}

interface Write {
  readonly address: ResultAddress;
  readonly result: StoredResult;
  readonly trace: RequestTrace;
}

/** Reads at the same time: a body is in memory before any cache has made room for it. */
const READS = { slots: 16, maxWaiting: 1_024 } as const;

/** Bytes of the bodies that these may read together. */
const MAX_READING_BYTES = 128 * 1024 * 1024;

/** Longest wait for the store, and then for the first byte, in milliseconds: to render anew takes less. */
const READ_TIMEOUT_MS = 2_000;

/** Slowest pace of a body, 4 MiB/s: its deadline grows with its length. The largest, of 32 MiB, gets 8 s. */
const MIN_BYTES_PER_MS = 4_096;

/** Period for which a store that has failed is not asked, in milliseconds. */
const FAILED_FOR_MS = 5_000;

const MAX_WRITES = 4;

/** Bytes of renderings that wait to be written, in memory; one alone may be larger. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/** Writes that fail are logged once in this many. */
const FAILURES_PER_LINE = 1_000;

/** Longer than the store of S3 gives a write, which bounds itself; a disk that hangs does not. */
const SETTLE_TIMEOUT_MS = 15_000;

/** Removals at a time, those that wait for them, and for how long, in milliseconds: some take minutes. */
const REMOVALS = { slots: 2, maxWaiting: 64, maxWaitMs: 60_000 } as const;

/** Longest time that a stop waits for the store, in milliseconds. */
const FLUSH_TIMEOUT_MS = 5_000;

/**
 * The store of results as the pipeline uses it: one that fails, or is slow, costs requests a short wait. Renderings are
 * written after their responses, in the background: no request waits for it, none fails by it.
 */
export class GuardedStore {
  readonly #parts: GuardedStoreParts;
  /** Outcomes of writes; dropped ones were never tried, since the store was too slow. */
  readonly writes = { written: 0, dropped: 0, failed: 0 };
  readonly #waiting: Write[] = [];
  readonly #running = new Set<Promise<void>>();
  #waitingBytes = 0;
  readonly #reads = new Semaphore({ ...READS, maxWaitMs: READ_TIMEOUT_MS });
  readonly #removals = new Semaphore(REMOVALS);
  #readingBytes = 0;
  #failedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(parts: GuardedStoreParts) {
    this.#parts = parts;
  }

  /** Whether the store has failed lately, and is not asked for now. */
  get isFailing(): boolean {
    return this.#parts.clock.nowMs() < this.#failedUntilMs;
  }

  /**
   * Looks a rendering up. A store that fails, or takes too long, has none.
   *
   * @throws `signal.reason`
   */
  async find(address: ResultAddress, signal: AbortSignal): Promise<StoredResult | undefined> {
    const { store, clock, log, meter } = this.#parts;
    if (this.isFailing) return undefined;
    const leave = await this.#reads.enter(signal).catch((error: unknown) => {
      signal.throwIfAborted();
      // To wait longer for it than for a render makes no sense.
      if (error instanceof MediaError) return undefined;
      throw error;
    });
    if (leave === undefined) return undefined;
    const onTimeout = (): Error => new StoreStalled('The store has not responded in time.');
    let takenBytes = 0;
    try {
      const found = await withDeadline(READ_TIMEOUT_MS, signal, onTimeout, (within, restart) =>
        store.read(address, within, (sizeBytes) => {
          if (within.aborted || this.#readingBytes + sizeBytes > MAX_READING_BYTES) return false;
          takenBytes += sizeBytes;
          this.#readingBytes += sizeBytes;
          restart(READ_TIMEOUT_MS + sizeBytes / MIN_BYTES_PER_MS);
          return true;
        }),
      );
      meter.count(found === undefined ? 'cacheMisses' : 'cacheHits', 'store');
      return found;
    } catch (error) {
      signal.throwIfAborted();
      // A store that sends a body, this one or another, is slow at most.
      const isSlow = error instanceof StoreStalled && this.#readingBytes > 0;
      if (!isSlow) this.#failedUntilMs = clock.nowMs() + FAILED_FOR_MS;
      const details = { err: error, path: resultPath(address) };
      log.warn(details, isSlow ? 'a stored rendering is late' : 'the result store has failed');
      return undefined;
    } finally {
      this.#readingBytes -= takenBytes;
      leave();
    }
  }

  /** Stores a rendering, later, unless too much is queued; the trace is that of the request that it was made for. */
  add(address: ResultAddress, result: StoredResult, trace: RequestTrace): void {
    const costBytes = costOf(result);
    if (this.#waitingBytes > 0 && this.#waitingBytes + costBytes > MAX_WAITING_BYTES) {
      this.writes.dropped += 1;
      return;
    }
    this.#waitingBytes += costBytes;
    this.#waiting.push({ address, result, trace });
    this.#startWrites();
  }

  /**
   * Removes renderings, those included that are on their way here.
   *
   * @param prefixes of their paths
   * @param fits whether a rendering that is still to be stored must not be
   * @returns how many were removed
   * @throws StoreFailed if the store fails, `StoreStalled` if it does not respond; MediaError `OVERLOADED` if other removals
   *   take too long
   */
  async remove(prefixes: readonly string[], fits: (originKey: string) => boolean): Promise<number> {
    const { store, settleTimeoutMs = SETTLE_TIMEOUT_MS } = this.#parts;
    for (const write of this.#waiting.splice(0)) {
      if (fits(write.address.originKey)) this.#waitingBytes -= costOf(write.result);
      else this.#waiting.push(write);
    }
    const onTimeout = (): Error =>
      new StoreStalled(`Writes have not ended within ${settleTimeoutMs} ms.`);
    // One that is under way might end after the removal.
    await withDeadline(settleTimeoutMs, undefined, onTimeout, () => Promise.all(this.#running));
    const leave = await this.#removals.enter(new AbortController().signal);
    try {
      let removed = 0;
      for (const prefix of prefixes) removed += await store.remove(prefix);
      return removed;
    } catch (error) {
      if (error instanceof StoreStalled) throw error;
      throw new StoreFailed('The result store has failed.', { cause: error });
    } finally {
      leave();
    }
  }

  /** Waits until what was to be stored is, or has failed; but not for a store that is too slow. */
  async flush(): Promise<void> {
    const isLate = new Error(`A store took longer than ${FLUSH_TIMEOUT_MS} ms.`);
    const settleAll = async (): Promise<void> => {
      while (this.#running.size > 0) await Promise.all(this.#running);
    };
    try {
      await withDeadline(FLUSH_TIMEOUT_MS, undefined, () => isLate, settleAll);
    } catch (error) {
      const unwritten = this.#waiting.length + this.#running.size;
      this.#parts.log.warn({ err: error, unwritten }, 'not all renderings could be stored');
    }
  }

  #startWrites(): void {
    while (this.#running.size < MAX_WRITES) {
      const write = this.#waiting.shift();
      if (write === undefined) return;
      const running = this.#write(write).finally(() => {
        this.#running.delete(running);
        this.#startWrites();
      });
      this.#running.add(running);
    }
  }

  async #write({ address, result, trace }: Write): Promise<void> {
    const { store, log } = this.#parts;
    try {
      await trace.stage('write', (span) => {
        span?.setAttributes({ 'darkroom.bytes': result.body.byteLength });
        return store.write(address, result);
      });
      this.writes.written += 1;
    } catch (error) {
      const { failed } = this.writes;
      this.writes.failed += 1;
      if (failed % FAILURES_PER_LINE === 0) {
        log.warn({ err: error, failed: failed + 1 }, 'a rendering could not be stored');
      }
    } finally {
      this.#waitingBytes -= costOf(result);
    }
  }
}

/** Its body, and about what else is kept of a write. */
function costOf({ body }: StoredResult): number {
  return body.byteLength + 1_024;
}
