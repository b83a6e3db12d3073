import type { WorkerProcess } from './worker-process.ts';

/** Idle workers. The most recently used one is taken first, so that others can end. */
export class IdleWorkers {
  /** Idle timers in the order in which the workers became idle. */
  readonly #timers = new Map<WorkerProcess, NodeJS.Timeout | undefined>();

  /** Adds a worker; calls `onTooLong` if it is still idle after `maxIdleMs`. `undefined`: never. */
  add(worker: WorkerProcess, maxIdleMs: number | undefined, onTooLong: () => void): void {
    const timer = maxIdleMs === undefined ? undefined : setTimeout(onTooLong, maxIdleMs).unref();
    this.#timers.set(worker, timer);
  }

  /** Removes a worker, if it is idle. */
  remove(worker: WorkerProcess): void {
    clearTimeout(this.#timers.get(worker));
    this.#timers.delete(worker);
  }

  /** Takes a usable worker that fits, and removes unusable ones. */
  take(fits: (worker: WorkerProcess) => boolean = () => true): WorkerProcess | undefined {
    for (const worker of [...this.#timers.keys()].reverse()) {
      if (!fits(worker)) continue;
      this.remove(worker);
      if (worker.isUsable) return worker;
    }
    return undefined;
  }

  /** Returns the first worker that fits. */
  find(fits: (worker: WorkerProcess) => boolean): WorkerProcess | undefined {
    return [...this.#timers.keys()].find(fits);
  }

  /** Cancels all idle timers. */
  stop(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }
}
