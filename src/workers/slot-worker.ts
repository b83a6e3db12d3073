import { MediaError } from '../contract/errors.ts';
import type { Lane, Log } from '../pipeline/ports.ts';
import type { WorkerProcess, WorkerProcessEvents } from './worker-process.ts';

/** Counters of worker events since the start. */
export interface WorkerCounters {
  /** Starts in place of a worker that ended or was killed, failed attempts included. */
  readonly restarts: number;
  /** Kills: at a deadline, for violating the protocol, for not becoming ready, because no client was left. */
  readonly kills: number;
  /** Replacements of worn workers. */
  readonly recycles: number;
}

/** State that the slots of one pool share. */
export interface SharedBySlots {
  readonly counters: { -readonly [Name in keyof WorkerCounters]: number };
  /** The only slot of the pool whose worn worker is being replaced. */
  recycling: SlotWorker | undefined;
}

/** Starts a process. */
export type Launch = (events: WorkerProcessEvents) => WorkerProcess;

/** Options of a slot's worker. */
export interface SlotWorkerOptions {
  readonly lane: Lane;
  /** Whether the slot always has a worker; any other starts one at need, which ends after being idle. */
  readonly isKept: boolean;
  /** Idle time after which a worker that is not kept ends, in milliseconds. */
  readonly maxIdleMs: number;
  /** Jobs after which a worker is replaced. */
  readonly maxJobs: number;
  /** Resident memory after a job from which on a worker is replaced, in bytes. */
  readonly maxRssBytes: number;
  readonly shared: SharedBySlots;
  readonly log: Log;
}

/** A job that waits until the slot's worker is ready. */
interface Waiter {
  readonly begin: (worker: WorkerProcess) => void;
  readonly fail: (reason: unknown) => void;
}

/** Longest wait for a worker to be ready, in milliseconds: far more than a start takes on a busy machine. */
const MAX_WAIT_MS = 10_000;

/** Back-off after the first failed start, doubled each time, and its maximum, in milliseconds. */
const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 5_000;

/**
 * The worker of a slot, at most one process at a time: the next one starts when the last one has ended. A process that
 * ends is replaced at once, after failed starts with back-off.
 */
export class SlotWorker {
  readonly #options: SlotWorkerOptions;
  /** `undefined` until a sandbox has been tried: no worker starts by itself. */
  #launch: Launch | undefined;
  /** The process, from its start to its end. */
  #process: WorkerProcess | undefined;
  #waiter: Waiter | undefined;
  #startTimer: NodeJS.Timeout | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  /** Failed starts in a row. */
  #failures = 0;
  /** Why the slot begins no more jobs, once it has been stopped. */
  #stopped: MediaError | undefined;

  constructor(options: SlotWorkerOptions) {
    this.#options = options;
  }

  /** The process, including one that is starting or ending. */
  get process(): WorkerProcess | undefined {
    return this.#process;
  }

  /** Whether the slot has a worker, or is about to. */
  get isStaffed(): boolean {
    return this.#options.isKept || this.#process !== undefined || this.#startTimer !== undefined;
  }

  /**
   * Starts a first worker in a sandbox that may not work; without `open`, no other takes its place.
   *
   * @throws Error if the worker ends before it is ready, MediaError `OVERLOADED` if the slot has been stopped
   */
  tryStart(launch: Launch): Promise<void> {
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    return new Promise((resolve, reject) => {
      this.#begin(launch, resolve, (ending) =>
        reject(new Error(`A render worker ended with ${ending} at its start.`)),
      );
    });
  }

  /** Lets workers start in a sandbox that works, from now on. */
  open(launch: Launch): void {
    this.#launch = launch;
    if (this.#options.isKept || this.#waiter !== undefined) this.#ensureWorker();
    this.#serveWaiter();
  }

  /** Ends the worker of a sandbox that does not work. */
  abandonTry(): void {
    this.#process?.kill('sandbox');
    this.#process = undefined;
  }

  /** Ends the worker at once, a busy one too; no other starts. */
  stop(): void {
    this.#stopped ??= stopped();
    clearTimeout(this.#startTimer);
    clearTimeout(this.#idleTimer);
    this.#waiter?.fail(this.#stopped);
    this.#process?.kill('shutdown', this.#stopped);
  }

  /**
   * Returns a living process that has no job; waits until there is one.
   *
   * @throws as `#join`
   */
  async ready(signal: AbortSignal): Promise<WorkerProcess> {
    const process = this.#process?.isUsable ? this.#process : await this.#join(signal);
    clearTimeout(this.#idleTimer);
    return process;
  }

  /**
   * Waits until the worker is ready, and starts one if there is none.
   *
   * @throws MediaError `OVERLOADED` if none is ready in time; or `signal.reason`
   */
  #join(signal: AbortSignal): Promise<WorkerProcess> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    return new Promise((resolve, reject) => {
      const settle = (how: () => void): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abandon);
        this.#waiter = undefined;
        how();
      };
      const fail = (reason: unknown): void => settle(() => reject(reason));
      const abandon = (): void => fail(signal.reason);
      const timer = setTimeout(() => {
        fail(overloaded(new Error(`No render worker was ready within ${MAX_WAIT_MS} ms.`)));
      }, MAX_WAIT_MS);
      signal.addEventListener('abort', abandon, { once: true });
      this.#waiter = { begin: (worker) => settle(() => resolve(worker)), fail };
      this.#ensureWorker();
    });
  }

  /** Replaces the worker if it is worn; otherwise lets it rest. */
  rest(): void {
    const worker = this.#process;
    if (!worker?.isUsable) return;
    const { shared, maxJobs, maxRssBytes, log, lane } = this.#options;
    const { processId, jobsDone, rssBytes } = worker;
    const isWorn = jobsDone >= maxJobs || rssBytes > maxRssBytes;
    if (shared.recycling === undefined && isWorn) {
      shared.recycling = this;
      log.info({ lane, processId, jobsDone, rssBytes }, 'a worn render worker is replaced');
      worker.kill('recycled');
    } else {
      this.#armIdleTimer();
    }
  }

  #armIdleTimer(): void {
    const { isKept, maxIdleMs, log, lane } = this.#options;
    clearTimeout(this.#idleTimer);
    if (isKept) return;
    this.#idleTimer = setTimeout(() => {
      const processId = this.#process?.processId;
      log.info({ lane, processId }, 'a render worker that was idle is ended');
      this.#process?.kill('idle');
    }, maxIdleMs).unref();
  }

  /** Starts a worker, unless there is one or the last one has not ended yet. */
  #ensureWorker(): void {
    const launch = this.#launch;
    if (launch === undefined || this.#stopped !== undefined) return;
    if (this.#process !== undefined || this.#startTimer !== undefined) return;
    this.#startTimer = setTimeout(() => {
      this.#startTimer = undefined;
      this.#begin(launch);
    }, this.#delayMs);
  }

  get #delayMs(): number {
    if (this.#failures === 0) return 0;
    return Math.min(FIRST_DELAY_MS * 2 ** (this.#failures - 1), MAX_DELAY_MS);
  }

  #begin(launch: Launch, onReady?: () => void, onFailed?: (ending: string) => void): void {
    const { shared } = this.#options;
    const worker = launch({
      onReady: () => {
        this.#failures = 0;
        if (shared.recycling === this) shared.recycling = undefined;
        onReady?.();
        this.#armIdleTimer();
        this.#serveWaiter();
      },
      onEnd: (ending) => {
        if (!worker.wasReady) onFailed?.(ending);
        if (worker === this.#process) this.#onEnd(worker, ending);
      },
    });
    this.#process = worker;
  }

  #serveWaiter(): void {
    if (this.#launch !== undefined && this.#process?.isUsable) this.#waiter?.begin(this.#process);
  }

  #onEnd(worker: WorkerProcess, ending: string): void {
    const { shared, log, lane, isKept } = this.#options;
    this.#process = undefined;
    clearTimeout(this.#idleTimer);
    if (this.#stopped !== undefined || this.#launch === undefined) return;
    const { killReason: reason, wasReady, processId, jobsDone, rssBytes } = worker;
    const details = { lane, processId, ending, reason, jobsDone, rssBytes };
    if (reason === 'recycled') {
      shared.counters.recycles += 1;
      log.info(details, 'a worn render worker has ended');
    } else if (reason !== 'idle') {
      if (reason !== undefined) shared.counters.kills += 1;
      shared.counters.restarts += 1;
      if (!wasReady) this.#failures += 1;
      const delayMs = this.#delayMs;
      log.warn({ ...details, delayMs }, 'a render worker has ended and is replaced');
    }
    // One that was idle may have been needed again before it had ended.
    if (isKept || reason !== 'idle' || this.#waiter !== undefined) this.#ensureWorker();
  }
}

/** Returns the error of a job, or of a start, after the stop. */
export function stopped(): MediaError {
  return overloaded(new Error('The render workers are stopped.'));
}

/** Returns the error of a job without an available worker. */
export function overloaded(cause: Error): MediaError {
  return new MediaError('OVERLOADED', { cause, bottleneck: 'workers', retryAfterSeconds: 1 });
}
