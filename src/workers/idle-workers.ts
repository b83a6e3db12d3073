import type { WorkerProcess } from './worker-process.ts';

/** Workers that have nothing to do. The one that was at work last is taken first, so that others can end. */
export class IdleWorkers {
  /** In the order in which they became idle, each with what tells that it has been so for too long. */
  readonly #timers = new Map<WorkerProcess, NodeJS.Timeout | undefined>();

  /** Adds one; `maxIdleMs` later, if it is still idle, `onTooLong` is called. `undefined`: never. */
  add(worker: WorkerProcess, maxIdleMs: number | undefined, onTooLong: () => void): void {
    const timer = maxIdleMs === undefined ? undefined : setTimeout(onTooLong, maxIdleMs).unref();
    this.#timers.set(worker, timer);
  }

  /** Takes one away, if it is there. */
  remove(worker: WorkerProcess): void {
    clearTimeout(this.#timers.get(worker));
    this.#timers.delete(worker);
  }

  /** Takes one that can be given a job away, and those away that cannot. */
  take(): WorkerProcess | undefined {
    for (const worker of [...this.#timers.keys()].reverse()) {
      this.remove(worker);
      if (worker.isUsable) return worker;
    }
    return undefined;
  }

  /** The first that fits. */
  find(fits: (worker: WorkerProcess) => boolean): WorkerProcess | undefined {
    return [...this.#timers.keys()].find(fits);
  }

  /** Has none of them be called too long idle any more. */
  stop(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }
}
