import { withDeadline } from '../abort.ts';
import type { Log, ResultAddress, ResultStore, StoredResult } from '../ports.ts';
import type { RequestTrace } from '../request-trace.ts';

/** What became of renderings that were to be stored, since the start. */
export interface WriteCounters {
  readonly written: number;
  /** Not even tried: the store was too slow for what came. */
  readonly dropped: number;
  readonly failed: number;
}

interface Write {
  readonly address: ResultAddress;
  readonly result: StoredResult;
  readonly trace: RequestTrace;
}

const MAX_WRITES = 4;

/** What is queued, in bytes: it is in memory until it is written. One alone may be larger. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/** A store that fails is logged once in this many failures. */
const FAILURES_PER_LINE = 1_000;

/** Writes renderings to the store after their responses, in the background: no request waits for it, none fails by it. */
export class ResultWriter {
  readonly #store: ResultStore;
  readonly #log: Log;
  readonly #waiting: Write[] = [];
  readonly #running = new Set<Promise<void>>();
  readonly #counters = { written: 0, dropped: 0, failed: 0 };
  #waitingBytes = 0;

  constructor(store: ResultStore, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  get counters(): WriteCounters {
    return this.#counters;
  }

  /** Takes a rendering to be written, unless too much is queued. */
  add(address: ResultAddress, result: StoredResult, trace: RequestTrace): void {
    const costBytes = costOf(result);
    if (this.#waitingBytes > 0 && this.#waitingBytes + costBytes > MAX_WAITING_BYTES) {
      this.#counters.dropped += 1;
      return;
    }
    this.#waitingBytes += costBytes;
    this.#waiting.push({ address, result, trace });
    this.#start();
  }

  /** Drops what waits to be written and fits: it is out of date. */
  drop(fits: (address: ResultAddress) => boolean): void {
    for (const write of this.#waiting.splice(0)) {
      if (fits(write.address)) this.#waitingBytes -= costOf(write.result);
      else this.#waiting.push(write);
    }
  }

  /** Waits until what is being written is written, or has failed. */
  async settle(): Promise<void> {
    await Promise.all(this.#running);
  }

  /** Waits until all that was taken is written, or has failed; but no longer than a time, in milliseconds. */
  async flush(maxWaitMs: number): Promise<void> {
    const isLate = new Error(`A store took longer than ${maxWaitMs} ms.`);
    const settleAll = async (): Promise<void> => {
      while (this.#running.size > 0) await this.settle();
    };
    try {
      await withDeadline(maxWaitMs, undefined, () => isLate, settleAll);
    } catch (error) {
      const unwritten = this.#waiting.length + this.#running.size;
      this.#log.warn({ err: error, unwritten }, 'not all renderings could be stored');
    }
  }

  #start(): void {
    while (this.#running.size < MAX_WRITES) {
      const write = this.#waiting.shift();
      if (write === undefined) return;
      const running = this.#write(write).finally(() => {
        this.#running.delete(running);
        this.#start();
      });
      this.#running.add(running);
    }
  }

  async #write({ address, result, trace }: Write): Promise<void> {
    try {
      await trace.show('write', (span) => {
        span?.setAttributes({ 'darkroom.bytes': result.body.byteLength });
        return this.#store.write(address, result);
      });
      this.#counters.written += 1;
    } catch (error) {
      const { failed } = this.#counters;
      this.#counters.failed += 1;
      if (failed % FAILURES_PER_LINE === 0) {
        this.#log.warn({ err: error, failed: failed + 1 }, 'a rendering could not be stored');
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
