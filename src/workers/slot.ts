import { EventEmitter, once } from 'node:events';
import { MediaError } from '../contract/errors.ts';
import type { MovingFacts } from '../formats/video/video-facts.ts';
import type {
  Lane,
  Log,
  RangeReader,
  RenderBounds,
  RenderJob,
  RenderSlot,
} from '../pipeline/ports.ts';
import type { WorkerJob, WorkerResponse } from './protocol.ts';
import { lostWorker, type Outcome, overloaded } from './running-job.ts';
import type { WorkerProcess } from './worker-process.ts';
import { LOST_WITH_STARTER } from './worker-starter.ts';

/** Counters of worker events since the start. */
export interface WorkerCounters {
  /** Starts in place of a worker that ended or was killed, failed attempts included. */
  readonly restarts: number;
  /** Kills: at a deadline, for violating the protocol, for not becoming ready, because no client was left. */
  readonly kills: number;
  /** Replacements of worn workers. */
  readonly recycles: number;
}

/** Starts a process. */
export type Launch = (onEnd: (ending: string) => void) => WorkerProcess;

/** Options of a slot. */
export interface SlotOptions {
  readonly lane: Lane;
  /** Whether the slot always has a worker; any other starts one at need, which ends after being idle. */
  readonly isKept: boolean;
  readonly maxIdleMs: number;
  /** Jobs after which a worker is replaced. */
  readonly maxJobs: number;
  /** Resident memory after a job from which on a worker is replaced, in bytes. */
  readonly maxRssBytes: number;
  /** Shared by the slots of one pool. */
  readonly counters: { -readonly [Name in keyof WorkerCounters]: number };
  readonly log: Log;
}

/** Most workers that may die under a job before the job has begun. */
const MAX_ATTEMPTS = 3;

/** Longest wait for a worker to be ready, in milliseconds: far more than a start takes on a busy machine. */
const MAX_WAIT_MS = 10_000;

/** Back-off after the first failed start, doubled each time, and its maximum, in milliseconds. */
const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 5_000;

/** Signals that a process's own faults do not raise. */
const KILLED_FROM_OUTSIDE: readonly string[] = ['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP'];

/** Time to notice the ends of workers that were killed at the same time, in milliseconds. */
const NOTICE_MS = 1_000;

/**
 * A CPU slot, which runs one job at a time in its worker, at most one process at a time: the next one starts when the
 * last one has ended, at once or, after failed starts, with back-off.
 */
export class Slot implements RenderSlot {
  readonly #options: SlotOptions;
  /** `undefined` until a sandbox has been tried: no worker starts by itself. */
  #launch: Launch | undefined;
  /** The process, from its start to its end. */
  #process: WorkerProcess | undefined;
  /** Emits `ready` when a worker is. */
  readonly #worker = new EventEmitter();
  #startTimer: NodeJS.Timeout | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  /** Failed starts in a row. */
  #failures = 0;
  #isAwaited = false;
  readonly #stop = new AbortController();

  constructor(options: SlotOptions) {
    this.#options = options;
  }

  get process(): WorkerProcess | undefined {
    return this.#process;
  }

  get isReady(): boolean {
    return this.#process?.isUsable ?? false;
  }

  /** Whether the slot has a worker, or is about to. */
  get isStaffed(): boolean {
    return this.#options.isKept || this.#process !== undefined || this.#startTimer !== undefined;
  }

  async render(
    original: Uint8Array | RangeReader,
    job: RenderJob,
    bounds: RenderBounds,
  ): Promise<Uint8Array> {
    const response = await this.#do({ original, job }, bounds);
    if (response.kind === 'rendered') return response.body;
    throw failureOf(response);
  }

  async inspect(original: RangeReader, bounds: RenderBounds): Promise<MovingFacts> {
    const response = await this.#do({ original, job: undefined }, bounds);
    if (response.kind === 'inspected') return response.facts;
    throw failureOf(response);
  }

  /**
   * Starts a first worker in a sandbox that may not work; without `open`, no other takes its place.
   *
   * @throws Error if the worker ends before it is ready, MediaError `OVERLOADED` if the slot has been stopped
   */
  async tryStart(launch: Launch): Promise<void> {
    this.#stop.signal.throwIfAborted();
    await this.#begin(launch).ready;
  }

  /** Lets workers start in a sandbox that works, from now on. */
  open(launch: Launch): void {
    this.#launch = launch;
    if (this.#options.isKept || this.#isAwaited) this.#ensureWorker();
  }

  abandonTry(): void {
    this.#process?.kill('sandbox');
    this.#process = undefined;
  }

  /** Ends the worker at once, a busy one too; no other starts. */
  stop(): void {
    const reason = stopped();
    this.#stop.abort(reason);
    clearTimeout(this.#startTimer);
    clearTimeout(this.#idleTimer);
    this.#process?.kill('shutdown', reason);
  }

  async #do(command: WorkerJob, bounds: RenderBounds): Promise<WorkerResponse> {
    try {
      return await this.#runTwice(command, bounds);
    } finally {
      this.#rest();
    }
  }

  /**
   * Runs a job, and once more, in the rest of its time, if its worker ended: that one may have been killed from outside,
   * by the kernel, short of memory, or by an operator. Only the end of the second, which has done no other job, shows
   * that the job is to blame. If the system kills that worker too, and others with it, the blame remains unknown.
   */
  async #runTwice(command: WorkerJob, bounds: RenderBounds): Promise<WorkerResponse> {
    const { lane, log } = this.#options;
    const first = await this.#run(command, bounds);
    if (first.kind !== 'lost') return first;
    const { ending, leftMs } = first;
    log.warn({ lane, ending }, 'a job whose render worker has ended is retried in a fresh one');
    const deaths = this.#countDeaths();
    const again = await this.#run(command, { ...bounds, timeoutMs: leftMs });
    if (again.kind !== 'lost') return again;
    if (again.ending === LOST_WITH_STARTER) throw overloaded(again.ending);
    if (!KILLED_FROM_OUTSIDE.includes(again.ending)) throw lostWorker(again.ending);
    await new Promise((resolve) => setTimeout(resolve, NOTICE_MS));
    if (this.#countDeaths() - deaths <= 1) throw lostWorker(again.ending);
    throw overloaded('Render workers are killed from outside.');
  }

  /** Counts the workers of the pool that have ended without being told to. */
  #countDeaths(): number {
    const { restarts, kills } = this.#options.counters;
    return restarts - kills;
  }

  /** Runs a job in a living worker; an idle one may have died, which is not the job's fault. */
  async #run(
    command: WorkerJob,
    bounds: RenderBounds,
  ): Promise<Exclude<Outcome, { readonly kind: 'not begun' }>> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      const worker = this.#usable ?? (await this.#await(bounds.signal));
      clearTimeout(this.#idleTimer);
      const outcome = await worker.run(command, bounds);
      if (outcome.kind !== 'not begun') return outcome;
    }
    throw overloaded('No render worker lived to begin the job.');
  }

  get #usable(): WorkerProcess | undefined {
    return this.#process?.isUsable ? this.#process : undefined;
  }

  /** Waits until the worker is ready, and starts one if there is none. */
  async #await(client: AbortSignal): Promise<WorkerProcess> {
    const late = new AbortController();
    const timer = setTimeout(() => {
      late.abort(overloaded(`No render worker was ready within ${MAX_WAIT_MS} ms.`));
    }, MAX_WAIT_MS);
    const signal = AbortSignal.any([client, this.#stop.signal, late.signal]);
    this.#isAwaited = true;
    try {
      for (;;) {
        signal.throwIfAborted();
        if (this.#usable !== undefined) return this.#usable;
        this.#ensureWorker();
        await once(this.#worker, 'ready', { signal }).catch(() => undefined);
      }
    } finally {
      this.#isAwaited = false;
      clearTimeout(timer);
    }
  }

  /** Replaces the worker if it is worn; otherwise lets it rest. */
  #rest(): void {
    const worker = this.#usable;
    if (worker === undefined) return;
    const { maxJobs, maxRssBytes, log, lane } = this.#options;
    const { processId, jobsDone, rssBytes } = worker;
    if (jobsDone >= maxJobs || rssBytes > maxRssBytes) {
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
    if (launch === undefined || this.#stop.signal.aborted) return;
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

  #begin(launch: Launch): WorkerProcess {
    const worker = launch((ending) => {
      if (worker === this.#process) this.#onEnd(worker, ending);
    });
    this.#process = worker;
    worker.ready.then(
      () => this.#onReady(),
      () => undefined,
    );
    return worker;
  }

  #onReady(): void {
    this.#failures = 0;
    this.#armIdleTimer();
    this.#worker.emit('ready');
  }

  #onEnd(worker: WorkerProcess, ending: string): void {
    const { counters, log, lane, isKept } = this.#options;
    this.#process = undefined;
    clearTimeout(this.#idleTimer);
    if (this.#launch === undefined || this.#stop.signal.aborted) return;
    const { killReason: reason, wasReady, processId, jobsDone, rssBytes } = worker;
    const details = { lane, processId, ending, reason, jobsDone, rssBytes };
    if (reason === 'recycled') {
      counters.recycles += 1;
      log.info(details, 'a worn render worker has ended');
    } else if (reason !== 'idle') {
      if (reason !== undefined) counters.kills += 1;
      counters.restarts += 1;
      if (!wasReady) this.#failures += 1;
      const delayMs = this.#delayMs;
      log.warn({ ...details, delayMs }, 'a render worker has ended and is replaced');
    }
    // One that was idle may have been needed again before it had ended.
    if (isKept || reason !== 'idle' || this.#isAwaited) this.#ensureWorker();
  }
}

/** Returns the error of a job's response; a worker's unknown failure is ours, logged as no `MediaError`, and a 500. */
function failureOf(response: WorkerResponse): Error {
  if (response.kind !== 'failed') return new Error(`"${response.kind}" is of another job.`);
  const { code, detail } = response;
  const cause = new Error(detail);
  if (code === 'OVERLOADED') return overloaded(detail);
  return code === 'INTERNAL_ERROR' ? cause : new MediaError(code, { cause });
}

/** Returns the error of a job, or of a start, after the stop. */
export function stopped(): MediaError {
  return overloaded('The render workers are stopped.');
}
