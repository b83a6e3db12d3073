import { Histogram, Registry } from 'prom-client';
import type { Lane, Meter } from '../pipeline/ports.ts';

/** Upper bounds of the waits that are told apart, in seconds; the longest that is allowed is 5 by default. */
const WAIT_BUCKETS_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Counts for Prometheus, in its text format. */
export class PrometheusMeter implements Meter {
  readonly #registry = new Registry();
  readonly #queueWait = new Histogram<'lane'>({
    name: 'darkroom_queue_wait_seconds',
    help: 'How long renders have waited for a CPU slot, 0 where one was free.',
    labelNames: ['lane'],
    buckets: WAIT_BUCKETS_SECONDS,
    registers: [this.#registry],
  });

  constructor() {
    // Rates need a first value, also of what has not happened yet.
    for (const lane of ['light', 'heavy'] satisfies Lane[]) this.#queueWait.zero({ lane });
  }

  noteQueueWait(lane: Lane, waitedMs: number): void {
    this.#queueWait.observe({ lane }, waitedMs / 1000);
  }

  /** Media type of `format`. */
  get contentType(): string {
    return this.#registry.contentType;
  }

  /** All that was counted, in the text format of Prometheus. */
  format(): Promise<string> {
    return this.#registry.metrics();
  }
}
