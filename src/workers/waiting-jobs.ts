import { WaitQueue } from './wait-queue.ts';
import type { WorkerProcess } from './worker-process.ts';

/** Longest wait for a worker, in milliseconds: callers hold a slot, so a worker will soon be ready. */
const MAX_WAIT_MS = 10_000;

/** Jobs that wait for a worker, in order. */
export class WaitingJobs {
  /** Each item is whether the job needs a worker without earlier jobs. */
  readonly #queue = new WaitQueue<boolean, WorkerProcess>({
    maxWaiting: Number.POSITIVE_INFINITY,
    maxWaitMs: MAX_WAIT_MS,
  });

  get length(): number {
    return this.#queue.length;
  }

  /** Number of jobs that need a worker without earlier jobs. */
  get waitingForFresh(): number {
    return this.#queue.items().filter((mustBeFresh) => mustBeFresh).length;
  }

  /**
   * Waits for a worker.
   *
   * @throws MediaError `OVERLOADED` if none is ready in time; or the reason of a signal
   */
  join(mustBeFresh: boolean, ...signals: readonly AbortSignal[]): Promise<WorkerProcess> {
    return this.#queue.join({
      item: mustBeFresh,
      signal: AbortSignal.any([...signals]),
      bottleneck: 'workers',
      retryAfterSeconds: () => 1,
    });
  }

  /**
   * Hands a worker to a waiting job; a fresh one first to those that need it.
   *
   * @returns whether a job has taken the worker
   */
  hand(worker: WorkerProcess): boolean {
    const isFresh = worker.jobsDone === 0;
    return (
      (isFresh && this.#queue.admitNext(worker, (mustBeFresh) => mustBeFresh)) ||
      this.#queue.admitNext(worker, (mustBeFresh) => !mustBeFresh)
    );
  }
}
