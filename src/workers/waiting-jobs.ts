import { WaitQueue } from '../pipeline/wait-queue.ts';
import type { WorkerProcess } from './worker-process.ts';

/** Longest wait for a worker, in milliseconds: callers hold a slot, so one is about to be ready. */
const MAX_WAIT_MS = 10_000;

/** Jobs that wait for a worker, in their order. */
export class WaitingJobs {
  /** Each says whether it waits for a worker that has done nothing yet. */
  readonly #queue = new WaitQueue<boolean, WorkerProcess>({
    maxWaiting: Number.POSITIVE_INFINITY,
    maxWaitMs: MAX_WAIT_MS,
  });

  /** How many there are. */
  get length(): number {
    return this.#queue.length;
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
   * Hands a worker to one of them; a fresh one first to those that need such a one.
   *
   * @returns whether there was one for it
   */
  hand(worker: WorkerProcess): boolean {
    const isFresh = worker.jobsDone === 0;
    return (
      (isFresh && this.#queue.admitNext(worker, (mustBeFresh) => mustBeFresh)) ||
      this.#queue.admitNext(worker, (mustBeFresh) => !mustBeFresh)
    );
  }
}
