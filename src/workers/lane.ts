import type { Lane, Log } from '../pipeline/ports.ts';
import { DelayedStarts } from './delayed-starts.ts';
import { IdleWorkers } from './idle-workers.ts';
import { WaitingJobs } from './waiting-jobs.ts';
import { stopped } from './worker-failures.ts';
import type { WorkerProcess, WorkerProcessEvents } from './worker-process.ts';

/** What happened to workers since the start. */
export interface WorkerCounters {
  /** Started in place of one that ended or was killed; attempts that failed included. */
  readonly restarts: number;
  /** Killed: at a deadline, by a stop, for breaking the protocol, for not becoming ready. */
  readonly kills: number;
  /** Replaced because they were worn. */
  readonly recycles: number;
}

/** What the lanes of one pool share. */
export interface SharedByLanes {
  readonly counters: { -readonly [Name in keyof WorkerCounters]: number };
  /** The one worker of the pool that is being replaced because it is worn. */
  leaving: WorkerProcess | undefined;
}

/** How a lane is made. */
export interface WorkerLaneOptions {
  readonly lane: Lane;
  /** How many workers to keep. */
  readonly least: number;
  /** How many there may be: those beyond the least start when they are needed, and end when they have been idle. */
  readonly most: () => number;
  /** For how long such a worker may be idle, in milliseconds. */
  readonly maxIdleMs: number;
  readonly launch: (events: WorkerProcessEvents) => WorkerProcess;
  /** Whether a worker has grown too large or too old. */
  readonly isWorn: (worker: WorkerProcess) => boolean;
  readonly shared: SharedByLanes;
  readonly log: Log;
}

/**
 * The workers of one lane: keeps as many as it should, starts more of them when all are at work, and replaces
 * those that end. Those that are worn are replaced without a gap: the replacement is started first, and the old
 * one works until it is there.
 */
export class WorkerLane {
  readonly #options: WorkerLaneOptions;
  /** All processes, from their start to their end. */
  readonly #members = new Set<WorkerProcess>();
  readonly #idle = new IdleWorkers();
  readonly #jobs = new WaitingJobs();
  readonly #stopping = new AbortController();
  readonly #starts = new DelayedStarts();
  /** How many workers there should be now. */
  #wanted: number;
  #isStarted = false;

  constructor(options: WorkerLaneOptions) {
    this.#options = options;
    this.#wanted = options.least;
  }

  /**
   * Starts as many workers as are to be kept.
   *
   * @throws Error if one cannot start, MediaError `OVERLOADED` if they are stopped already
   */
  async start(): Promise<void> {
    this.#stopping.signal.throwIfAborted();
    await Promise.all(Array.from({ length: this.#wanted }, () => this.#launch()));
    this.#isStarted = true;
    this.#fill(0); // one that was ready may have died while others were not
  }

  /** Ends all workers at once, busy ones too. */
  stop(): void {
    const failure = stopped();
    this.#stopping.abort(failure);
    this.#idle.stop();
    this.#starts.stop();
    for (const worker of this.#members) worker.kill('shutdown', failure);
  }

  /** How many workers there should be now; one that is being started in place of another counts. */
  get wanted(): number {
    return this.#wanted;
  }

  /** Whether a worker has nothing to do. */
  get hasIdle(): boolean {
    return this.#idle.find(({ isUsable }) => isUsable) !== undefined;
  }

  get processIds(): readonly number[] {
    return [...this.#members].flatMap(({ processId }) => processId ?? []);
  }

  /** Resident memory of all, after their last jobs, in bytes; 0 of those that have done none. */
  get rssBytes(): number {
    return [...this.#members].reduce((sum, { rssBytes }) => sum + rssBytes, 0);
  }

  /** Process ids of those that are idle or at work. */
  get readyProcessIds(): readonly number[] {
    return this.#usable().flatMap(({ processId }) => processId ?? []);
  }

  /**
   * A worker that is idle, or the first one to be. To be given back with `release`.
   *
   * @throws MediaError `OVERLOADED` if none is ready in time; or `signal.reason`
   */
  take(signal: AbortSignal): Promise<WorkerProcess> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#stopping.signal.aborted) return Promise.reject(this.#stopping.signal.reason);
    const idle = this.#idle.take();
    if (idle !== undefined) return Promise.resolve(idle);
    this.#grow();
    return this.#jobs.join(false, signal, this.#stopping.signal);
  }

  /**
   * The first worker to be that has done nothing yet: for a job whose worker has ended under it, in the place
   * of which one is starting.
   *
   * @throws as `take`
   */
  takeFresh(signal: AbortSignal): Promise<WorkerProcess> {
    return this.#jobs.join(true, signal, this.#stopping.signal);
  }

  /** Takes a worker back after its job, whatever became of it. */
  release(worker: WorkerProcess): void {
    if (!worker.isUsable) return;
    const { shared, isWorn, log, lane } = this.#options;
    if (shared.leaving === undefined && isWorn(worker)) {
      shared.leaving = worker;
      const { processId, jobsDone, rssBytes } = worker;
      log.info({ lane, processId, jobsDone, rssBytes }, 'a worn render worker is to be replaced');
      this.#fill(0);
    }
    if (this.#isDispensable(worker)) worker.kill('recycled');
    else if (!this.#jobs.hand(worker)) this.#addIdle(worker);
  }

  /** Lets one more worker start, where there may be one and those that start already are too few for what waits. */
  #grow(): void {
    const starting = this.#wanted - this.#usable().length;
    if (this.#wanted >= this.#options.most() || this.#jobs.length < starting) return;
    this.#wanted += 1;
    this.#fill(0);
  }

  #addIdle(worker: WorkerProcess): void {
    const { least, most, maxIdleMs, log, lane } = this.#options;
    this.#idle.add(worker, most() > least ? maxIdleMs : undefined, () => {
      if (this.#wanted <= least) return;
      this.#wanted -= 1;
      log.info({ lane, processId: worker.processId }, 'a render worker that was idle is ended');
      worker.kill('idle');
    });
  }

  /** A worn worker whose replacement is there. */
  #isDispensable(worker: WorkerProcess): boolean {
    return worker === this.#options.shared.leaving && this.#usable().length > this.#wanted;
  }

  #usable(): WorkerProcess[] {
    return [...this.#members].filter(({ isUsable }) => isUsable);
  }

  /** Starts as many workers as are missing. */
  #fill(delayMs: number): void {
    const { shared, log, lane } = this.#options;
    const leaving = shared.leaving !== undefined && this.#members.has(shared.leaving) ? 1 : 0;
    const coming = this.#members.size - leaving + this.#starts.size;
    const start = (): void => {
      this.#launch().catch((error: unknown) => {
        log.error({ err: error, lane }, 'a render worker cannot start');
      });
    };
    for (let missing = this.#wanted - coming; missing > 0; missing -= 1) {
      this.#starts.schedule(start, delayMs);
    }
  }

  /** Starts one worker; resolved when it is ready, rejected if it ends before. */
  #launch(): Promise<void> {
    return new Promise((resolve, reject) => {
      const worker = this.#options.launch({
        onReady: () => {
          this.#starts.noteReady();
          this.release(worker);
          this.#idle.find((other) => this.#isDispensable(other))?.kill('recycled');
          resolve();
        },
        onEnd: (ending) => {
          if (!worker.wasReady) {
            reject(new Error(`A render worker ended with ${ending} at its start.`));
          }
          this.#onEnd(worker, ending);
        },
      });
      this.#members.add(worker);
    });
  }

  #onEnd(worker: WorkerProcess, ending: string): void {
    const { shared, log, lane } = this.#options;
    const { killReason: reason, wasReady, processId, jobsDone, rssBytes } = worker;
    this.#members.delete(worker);
    this.#idle.remove(worker);
    if (shared.leaving === worker) shared.leaving = undefined;
    if (this.#stopping.signal.aborted) return;
    const details = { lane, processId, ending, reason, jobsDone, rssBytes };
    if (reason === 'recycled') {
      shared.counters.recycles += 1;
      log.info(details, 'a worn render worker has ended');
      return;
    }
    if (reason === 'idle') {
      this.#fill(0); // it may have been needed again before it had ended
      return;
    }
    if (reason !== undefined) shared.counters.kills += 1;
    if (!this.#isStarted) return;
    shared.counters.restarts += 1;
    const delayMs = wasReady ? 0 : this.#starts.noteFailure();
    log.warn({ ...details, delayMs }, 'a render worker has ended and is replaced');
    this.#fill(delayMs);
  }
}
