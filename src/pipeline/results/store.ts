import { type ResultAddress, resultPath } from '../../contract/result-key.ts';
import { isTimeout, timeoutError, withDeadline } from '../abort.ts';
import type { Tools } from '../meter.ts';
import type { ResultStore, StoredResult } from '../ports.ts';
import type { RequestTrace } from '../request-trace.ts';
import { Semaphore } from '../semaphore.ts';

interface Write {
  readonly address: ResultAddress;
  readonly result: StoredResult;
  readonly trace: RequestTrace | undefined;
}

/** Maximum wait for the first byte, in milliseconds; rendering again takes less than a longer wait. */
const FIRST_BYTE_TIMEOUT_MS = 2_000;

/** Minimum pace of a body, 4 MiB/s: 8 s for the largest rendering of 32 MiB. */
const MIN_BYTES_PER_MS = 4_096;

/** Period without requests after a failure of the store, in milliseconds. */
const FAILED_FOR_MS = 5_000;

const MAX_WRITES = 4;

/** Maximum size of waiting writes, in bytes; a single one may be larger. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

const FAILURES_PER_LINE = 1_000;

/** Maximum wait of a removal for running writes, in milliseconds; longer than the timeout of a write to S3. */
const SETTLE_TIMEOUT_MS = 15_000;

/** Limits of removals, some of which take minutes. */
const REMOVALS = { slots: 2, maxWaiting: 64, maxWaitMs: 60_000 } as const;

const FLUSH_TIMEOUT_MS = 5_000;

/**
 * Result store that delays requests by seconds at most if it fails or is slow. Renderings are written in the
 * background, so a write never delays or fails a request.
 */
export class GuardedStore {
  readonly #store: ResultStore;
  readonly #tools: Pick<Tools, 'clock' | 'log' | 'meter'>;
  /** Outcomes of writes; `dropped`: the queue was full. */
  readonly writes = { written: 0, dropped: 0, failed: 0 };
  readonly #waiting: Write[] = [];
  readonly #running = new Set<Promise<void>>();
  #waitingBytes = 0;
  readonly #removals = new Semaphore(REMOVALS, 'requests');
  #openBodies = 0;
  #failedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(store: ResultStore, tools: Pick<Tools, 'clock' | 'log' | 'meter'>) {
    this.#store = store;
    this.#tools = tools;
  }

  /** Whether the store failed recently, and is not used at present. */
  get isFailing(): boolean {
    return this.#tools.clock.nowMs() < this.#failedUntilMs;
  }

  /** Finds a rendering; returns `undefined` if the store fails or is too slow. @throws `signal.reason` */
  async find(address: ResultAddress, signal: AbortSignal): Promise<StoredResult | undefined> {
    const { clock, log, meter } = this.#tools;
    if (this.isFailing) return undefined;
    const onTimeout = (): Error => timeoutError('The store did not respond in time.');
    let isArriving = false;
    try {
      const found = await withDeadline(
        FIRST_BYTE_TIMEOUT_MS,
        signal,
        onTimeout,
        (within, restart) =>
          this.#store.read(address, within, (sizeBytes) => {
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
      // A store that is sending bodies is slow, but has not failed.
      const isSlow = isTimeout(error) && this.#openBodies > 0;
      if (!isSlow) this.#failedUntilMs = clock.nowMs() + FAILED_FOR_MS;
      const details = { err: error, path: resultPath(address) };
      if (!isSlow) log.warn(details, 'the result store failed');
      else if (isArriving) log.warn(details, 'reading a stored result timed out');
      return undefined;
    } finally {
      if (isArriving) this.#openBodies -= 1;
    }
  }

  /** Stores a rendering in the background, unless too many wait. */
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
   * Removes renderings by prefixes of their paths, and returns their number. Discards waiting writes that match.
   *
   * @throws errors of the store, a `timeoutError` if it does not respond; MediaError `OVERLOADED` if other removals
   *   take too long
   */
  async remove(prefixes: readonly string[], fits: (originKey: string) => boolean): Promise<number> {
    for (const write of this.#waiting.splice(0)) {
      if (fits(write.address.originKey)) this.#waitingBytes -= costOf(write.result);
      else this.#waiting.push(write);
    }
    const onTimeout = (): Error =>
      timeoutError(`Writes did not end within ${SETTLE_TIMEOUT_MS} ms.`);
    // A running write might end after the removal.
    await withDeadline(SETTLE_TIMEOUT_MS, undefined, onTimeout, () => Promise.all(this.#running));
    const free = await this.#removals.acquire(new AbortController().signal);
    try {
      let removed = 0;
      for (const prefix of prefixes) removed += await this.#store.remove(prefix);
      return removed;
    } finally {
      free();
    }
  }

  /** Waits for all writes, up to `FLUSH_TIMEOUT_MS`. */
  async flush(): Promise<void> {
    const onTimeout = (): Error => timeoutError(`A store took longer than ${FLUSH_TIMEOUT_MS} ms.`);
    const settleAll = async (): Promise<void> => {
      while (this.#running.size > 0) await Promise.all(this.#running);
    };
    try {
      await withDeadline(FLUSH_TIMEOUT_MS, undefined, onTimeout, settleAll);
    } catch (error) {
      const unwritten = this.#waiting.length + this.#running.size;
      this.#tools.log.warn({ err: error, unwritten }, 'not all renderings could be stored');
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
    try {
      const write = (): Promise<void> => this.#store.write(address, result);
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
        this.#tools.log.warn({ err: error, failed: failed + 1 }, 'a rendering could not be stored');
      }
    } finally {
      this.#waitingBytes -= costOf(result);
    }
  }
}

function costOf({ body }: StoredResult): number {
  return body.byteLength + 1_024;
}
