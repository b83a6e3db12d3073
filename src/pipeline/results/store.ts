import { isTimeout, timeoutError, withDeadline } from '../abort.ts';
import type { Meter } from '../meter.ts';
import type { Clock, Log, ResultAddress, ResultStore, StoredResult } from '../ports.ts';
import { resultPath } from '../ports.ts';
import type { RequestTrace } from '../request-trace.ts';
import { Semaphore } from '../semaphore.ts';

interface GuardedStoreParts {
  readonly store: ResultStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Pick<Meter, 'count'>;
}

interface Write {
  readonly address: ResultAddress;
  readonly result: StoredResult;
  readonly trace: RequestTrace | undefined;
}

/** Longest wait for the first byte, in milliseconds: rendering anew takes less. */
const FIRST_BYTE_TIMEOUT_MS = 2_000;

/** Slowest pace of a body, 4 MiB/s: its deadline grows with its length. The largest, of 32 MiB, gets 8 s more. */
const MIN_BYTES_PER_MS = 4_096;

/** Period for which a store that has failed is not used, in milliseconds. */
const FAILED_FOR_MS = 5_000;

const MAX_WRITES = 4;

/** Bytes of renderings that wait to be written, in memory; a single one may be larger. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/** Writes that fail are logged once in this many. */
const FAILURES_PER_LINE = 1_000;

/** Longest wait of a removal for writes, in milliseconds: more than the store of S3 gives a write. */
const SETTLE_TIMEOUT_MS = 15_000;

/** Removals at a time, those that wait for them, and for how long, in milliseconds: some take minutes. */
const REMOVALS = { slots: 2, maxWaiting: 64, maxWaitMs: 60_000 } as const;

/** Longest time that a stop waits for the store, in milliseconds. */
const FLUSH_TIMEOUT_MS = 5_000;

/**
 * The result store as the pipeline uses it: a store that fails, or is slow, costs requests a short wait. Renderings are
 * written after their responses, in the background: no request waits for a write, and none fails by one.
 */
export class GuardedStore {
  readonly #parts: GuardedStoreParts;
  /** Outcomes of writes; dropped ones were never tried, since the store was too slow. */
  readonly writes = { written: 0, dropped: 0, failed: 0 };
  readonly #waiting: Write[] = [];
  readonly #running = new Set<Promise<void>>();
  #waitingBytes = 0;
  readonly #removals = new Semaphore(REMOVALS);
  /** Bodies that the store is sending. */
  #openBodies = 0;
  #failedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(parts: GuardedStoreParts) {
    this.#parts = parts;
  }

  /** Whether the store has failed lately, and is not used now. */
  get isFailing(): boolean {
    return this.#parts.clock.nowMs() < this.#failedUntilMs;
  }

  /**
   * Looks a rendering up; returns `undefined` if the store fails or takes too long.
   *
   * @throws `signal.reason`
   */
  async find(address: ResultAddress, signal: AbortSignal): Promise<StoredResult | undefined> {
    const { store, clock, log, meter } = this.#parts;
    if (this.isFailing) return undefined;
    const onTimeout = (): Error => timeoutError('The store has not responded in time.');
    let isArriving = false;
    try {
      const found = await withDeadline(
        FIRST_BYTE_TIMEOUT_MS,
        signal,
        onTimeout,
        (within, restart) =>
          store.read(address, within, (sizeBytes) => {
            if (within.aborted) return;
            restart(FIRST_BYTE_TIMEOUT_MS + sizeBytes / MIN_BYTES_PER_MS);
            isArriving = true;
            this.#openBodies += 1;
          }),
      );
      meter.count(found === undefined ? 'cacheMisses' : 'cacheHits', 'store');
      return found;
    } catch (error) {
      signal.throwIfAborted();
      // While the store sends any body, it is slow and has not failed.
      const isSlow = isTimeout(error) && this.#openBodies > 0;
      if (!isSlow) this.#failedUntilMs = clock.nowMs() + FAILED_FOR_MS;
      const details = { err: error, path: resultPath(address) };
      if (!isSlow) log.warn(details, 'the result store has failed');
      else if (isArriving) log.warn(details, 'reading a stored result timed out');
      return undefined;
    } finally {
      if (isArriving) this.#openBodies -= 1;
    }
  }

  /** Stores a rendering in the background, unless too much waits; `trace` belongs to the request that it was made for. */
  add(address: ResultAddress, result: StoredResult, trace?: RequestTrace): void {
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
   * Removes renderings, including those that wait to be written.
   *
   * @param prefixes of their paths
   * @param fits whether a rendering that waits must not be written
   * @returns the number of removed renderings
   * @throws errors of the store, a `timeoutError` if it does not respond; MediaError `OVERLOADED` if other removals take
   *   too long
   */
  async remove(prefixes: readonly string[], fits: (originKey: string) => boolean): Promise<number> {
    for (const write of this.#waiting.splice(0)) {
      if (fits(write.address.originKey)) this.#waitingBytes -= costOf(write.result);
      else this.#waiting.push(write);
    }
    const onTimeout = (): Error =>
      timeoutError(`Writes have not ended within ${SETTLE_TIMEOUT_MS} ms.`);
    // A write under way might end after the removal.
    await withDeadline(SETTLE_TIMEOUT_MS, undefined, onTimeout, () => Promise.all(this.#running));
    const leave = await this.#removals.enter(new AbortController().signal);
    try {
      let removed = 0;
      for (const prefix of prefixes) removed += await this.#parts.store.remove(prefix);
      return removed;
    } finally {
      leave();
    }
  }

  /** Waits for all writes, but not for a store that is too slow. */
  async flush(): Promise<void> {
    const onTimeout = (): Error => timeoutError(`A store took longer than ${FLUSH_TIMEOUT_MS} ms.`);
    const settleAll = async (): Promise<void> => {
      while (this.#running.size > 0) await Promise.all(this.#running);
    };
    try {
      await withDeadline(FLUSH_TIMEOUT_MS, undefined, onTimeout, settleAll);
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
      const write = (): Promise<void> => store.write(address, result);
      await (trace === undefined
        ? write()
        : trace.stage('write', (details) => {
            details.bytes = result.body.byteLength;
            return write();
          }));
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

/** Returns the memory of a write in bytes: the body, and about what else is kept. */
function costOf({ body }: StoredResult): number {
  return body.byteLength + 1_024;
}
