import type { Lane, Log } from '../pipeline/ports.ts';
import { DelayedStarts } from './delayed-starts.ts';
import { IdleWorkers } from './idle-workers.ts';
import { WaitingJobs } from './waiting-jobs.ts';
import { stopped } from './worker-failures.ts';
import type { WorkerProcess, WorkerProcessEvents } from './worker-process.ts';

/** Counters of worker events since the start. */
export interface WorkerCounters {
  /** Starts in place of a worker that ended or was killed, failed attempts included. */
  readonly restarts: number;
  /** Kills: at a deadline, by a stop, for violating the protocol, for not becoming ready. */
  readonly kills: number;
  /** Replacements of worn workers. */
  readonly recycles: number;
}

/** State that the lanes of one pool share. */
export interface SharedByLanes {
  readonly counters: { -readonly [Name in keyof WorkerCounters]: number };
  /** The only worker of the pool that is being replaced because it is worn. */
  retiring: WorkerProcess | undefined;
}

/** Options of a lane. */
export interface WorkerLaneOptions {
  readonly lane: Lane;
  /** Number of workers to keep. */
  readonly least: number;
  /** Most workers: those beyond `least` start on demand, and end after being idle. */
  readonly most: () => number;
  /** Idle time after which such a worker ends, in milliseconds. */
  readonly maxIdleMs: number;
  readonly launch: (events: WorkerProcessEvents) => WorkerProcess;
  /** Whether a worker has grown too large or too old. */
  readonly isWorn: (worker: WorkerProcess) => boolean;
  readonly shared: SharedByLanes;
  readonly log: Log;
}

/**
 * The workers of one lane: keeps the wanted number, starts more when all are busy, and replaces those that end. Worn
 * workers are replaced without a gap: the replacement starts first, and the old one works until it is ready.
 */
export class WorkerLane {
  readonly #options: WorkerLaneOptions;
  /** All processes, from their start to their end. */
  readonly #members = new Set<WorkerProcess>();
  readonly #idle = new IdleWorkers();
  readonly #jobs = new WaitingJobs();
  readonly #stopping = new AbortController();
  readonly #starts = new DelayedStarts();
  /** Current target for the number of workers. */
  #wanted: number;
  #isStarted = false;

  constructor(options: WorkerLaneOptions) {
    this.#options = options;
    this.#wanted = options.least;
  }

  /**
   * Starts the workers that are to be kept.
   *
   * @throws Error if one cannot start, MediaError `OVERLOADED` if the lane has been stopped
   */
  async start(): Promise<void> {
    this.#stopping.signal.throwIfAborted();
    await Promise.all(Array.from({ length: this.#wanted }, () => this.#launch()));
    this.#isStarted = true;
    this.#fill(0); // a ready worker may have died while others started
  }

  /** Ends all workers at once, busy ones too. */
  stop(): void {
    const failure = stopped();
    this.#stopping.abort(failure);
    this.#idle.stop();
    this.#starts.stop();
    for (const worker of this.#members) worker.kill('shutdown', failure);
  }

  /** Current target for the number of workers, replacements included. */
  get wanted(): number {
    return this.#wanted;
  }

  get processIds(): readonly number[] {
    return [...this.#members].flatMap(({ processId }) => processId ?? []);
  }

  /** Resident memory of all workers after their last jobs, in bytes; 0 for those without a job. */
  get rssBytes(): number {
    return [...this.#members].reduce((sum, { rssBytes }) => sum + rssBytes, 0);
  }

  /** Process ids of idle and busy workers. */
  get readyProcessIds(): readonly number[] {
    return this.#usable().flatMap(({ processId }) => processId ?? []);
  }

  /**
   * Takes an idle worker, or the first one to become idle; `release` must follow.
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
   * Takes a worker that has done no job yet: for a job whose worker has ended, and is being replaced. If the
   * replacement was already ready, as that of a worn worker may be, and has worked since, takes any worker.
   *
   * @throws as `take`
   */
  takeFresh(signal: AbortSignal): Promise<WorkerProcess> {
    const idle = this.#idle.take(({ jobsDone }) => jobsDone === 0);
    if (idle !== undefined) return Promise.resolve(idle);
    if (this.#jobs.waitingForFresh >= this.#starting) return this.take(signal);
    return this.#jobs.join(true, signal, this.#stopping.signal);
  }

  /** Releases a worker after its job, whatever the outcome. */
  release(worker: WorkerProcess): void {
    if (!worker.isUsable) return;
    const { shared, isWorn, log, lane } = this.#options;
    if (shared.retiring === undefined && isWorn(worker)) {
      shared.retiring = worker;
      const { processId, jobsDone, rssBytes } = worker;
      log.info({ lane, processId, jobsDone, rssBytes }, 'a worn render worker is to be replaced');
      this.#fill(0);
    }
    if (this.#isDispensable(worker)) worker.kill('recycled');
    else if (!this.#jobs.hand(worker)) this.#addIdle(worker);
  }

  /** Raises the target by one if the bound allows it and fewer workers are starting than jobs wait. */
  #grow(): void {
    if (this.#wanted >= this.#options.most() || this.#jobs.length < this.#starting) return;
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

  /** Whether a worker is worn and its replacement is ready. */
  #isDispensable(worker: WorkerProcess): boolean {
    return worker === this.#options.shared.retiring && this.#usable().length > this.#wanted;
  }

  /** Number of workers that will soon be ready, at least. */
  get #starting(): number {
    return this.#wanted - this.#usable().length;
  }

  #usable(): WorkerProcess[] {
    return [...this.#members].filter(({ isUsable }) => isUsable);
  }

  /** Starts the missing workers. */
  #fill(delayMs: number): void {
    const { shared, log, lane } = this.#options;
    const retiring = shared.retiring !== undefined && this.#members.has(shared.retiring) ? 1 : 0;
    const coming = this.#members.size - retiring + this.#starts.size;
    const start = (): void => {
      this.#launch().catch((error: unknown) => {
        log.error({ err: error, lane }, 'a render worker cannot start');
      });
    };
    for (let missing = this.#wanted - coming; missing > 0; missing -= 1) {
      this.#starts.schedule(start, delayMs);
    }
  }

  /** Starts one worker; resolves when it is ready, rejects if it ends before. */
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
    if (shared.retiring === worker) shared.retiring = undefined;
    if (this.#stopping.signal.aborted) return;
    const details = { lane, processId, ending, reason, jobsDone, rssBytes };
    if (reason === 'recycled') {
      shared.counters.recycles += 1;
      log.info(details, 'a worn render worker has ended');
      return;
    }
    if (reason === 'idle') {
      this.#fill(0); // the worker may have been needed again before it had ended
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
