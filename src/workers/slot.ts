import type { AvMetadata } from '../formats/video/av-metadata.ts';
import { unlessAborted } from '../pipeline/abort.ts';
import type {
  Lane,
  Log,
  RangeReader,
  RenderBounds,
  RenderJob,
  RenderSlot,
} from '../pipeline/ports.ts';
import type { WorkerJob, WorkerResponse } from './protocol.ts';
import { runWithRetry } from './run-with-retry.ts';
import { failureOf, overloaded, stopped } from './worker-errors.ts';
import type { WorkerProcess } from './worker-process.ts';

export interface WorkerCounters {
  /** Starts that replace a worker after its end or a kill, including failed starts. */
  readonly restarts: number;
  /** Kills at a deadline, for a protocol violation, for a slow start, or because all clients have left. */
  readonly kills: number;
  readonly recycles: number;
}

export type StartWorker = (onEnd: (ending: string) => void) => WorkerProcess;

/** Settings of the slots of a lane; only `isPermanent` differs. */
interface SlotSettings {
  readonly lane: Lane;
  /** Whether the slot always has a worker. Otherwise one starts on demand, and ends when idle. */
  readonly isPermanent: boolean;
  readonly maxIdleMs: number;
  readonly maxJobs: number;
  /** Resident memory after a job, in bytes, above which a worker is recycled. */
  readonly maxRssBytes: number;
  readonly counters: { -readonly [Name in keyof WorkerCounters]: number };
  readonly log: Log;
}

/** Maximum wait for a worker, in milliseconds: far longer than a start on a busy machine. */
const MAX_WAIT_MS = 10_000;

/** Back-off in milliseconds after the first failed start, doubled each time up to the maximum. */
const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 5_000;

/** Runs one job at a time in its worker, which is replaced when it ends; after failed starts, with back-off. */
export class Slot implements RenderSlot {
  readonly #settings: SlotSettings;
  /** `undefined` until a sandbox has worked; until then, no worker is replaced. */
  #startWorker: StartWorker | undefined;
  #process: WorkerProcess | undefined;
  /** Timer of the next start, or of the idle time of the current process. */
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #wake: (() => void) | undefined;
  readonly #stopping = new AbortController();

  constructor(settings: SlotSettings) {
    this.#settings = settings;
  }

  get process(): WorkerProcess | undefined {
    return this.#process;
  }

  get isReady(): boolean {
    return this.#process?.isUsable ?? false;
  }

  /** Whether the slot has a worker, or will start one. */
  get hasWorker(): boolean {
    return this.#settings.isPermanent || this.#process !== undefined || this.#timer !== undefined;
  }

  async render(
    original: Uint8Array | RangeReader,
    job: RenderJob,
    bounds: RenderBounds,
  ): Promise<Uint8Array> {
    const response = await this.#run({ original, job }, bounds);
    if (response.kind === 'rendered') return response.body;
    throw failureOf(response);
  }

  async inspect(original: RangeReader, bounds: RenderBounds): Promise<AvMetadata> {
    const response = await this.#run({ original, job: undefined }, bounds);
    if (response.kind === 'inspected') return response.metadata;
    throw failureOf(response);
  }

  /** Starts a first worker in a sandbox that may not work. @throws Error if it ends too soon, MediaError if stopped */
  async probe(startWorker: StartWorker): Promise<void> {
    this.#stopping.signal.throwIfAborted();
    await this.#startProcess(startWorker).ready;
  }

  enable(startWorker: StartWorker): void {
    this.#startWorker = startWorker;
    if (this.#settings.isPermanent || this.#wake) this.#ensureWorker();
  }

  cancelProbe(): void {
    this.#process?.kill('sandbox');
    this.#process = undefined;
  }

  /** Kills the worker, even a busy one, without a replacement. */
  stop(): void {
    const reason = stopped();
    this.#stopping.abort(reason);
    clearTimeout(this.#timer);
    this.#process?.kill('shutdown', reason);
  }

  async #run(job: WorkerJob, bounds: RenderBounds): Promise<WorkerResponse> {
    const { lane, log, counters } = this.#settings;
    try {
      return await runWithRetry(job, bounds, {
        acquire: (client) => this.#acquire(client),
        countDeaths: () => counters.restarts - counters.kills,
        onRetry: (ending) => {
          log.warn({ lane, ending }, 'render worker died during a job; retrying in a new worker');
        },
      });
    } finally {
      this.#recycleOrIdle();
    }
  }

  async #acquire(client: AbortSignal): Promise<WorkerProcess> {
    const worker = this.#usableWorker ?? (await this.#waitForWorker(client));
    clearTimeout(this.#timer);
    return worker;
  }

  get #usableWorker(): WorkerProcess | undefined {
    return this.#process?.isUsable ? this.#process : undefined;
  }

  async #waitForWorker(client: AbortSignal): Promise<WorkerProcess> {
    const timeout = new AbortController();
    const timer = setTimeout(() => {
      timeout.abort(overloaded(`No render worker was ready within ${MAX_WAIT_MS} ms.`));
    }, MAX_WAIT_MS);
    const signal = AbortSignal.any([client, this.#stopping.signal, timeout.signal]);
    try {
      for (;;) {
        signal.throwIfAborted();
        if (this.#usableWorker !== undefined) return this.#usableWorker;
        this.#ensureWorker();
        const woken = new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        await unlessAborted(woken, signal);
      }
    } finally {
      this.#wake = undefined;
      clearTimeout(timer);
    }
  }

  /** Kills a worker that is due for recycling; otherwise starts its idle time. */
  #recycleOrIdle(): void {
    const worker = this.#usableWorker;
    if (worker === undefined) return;
    const { maxJobs, maxRssBytes, log, lane } = this.#settings;
    const { processId, jobsDone, rssBytes } = worker;
    if (jobsDone >= maxJobs || rssBytes > maxRssBytes) {
      log.info({ lane, processId, jobsDone, rssBytes }, 'recycling a render worker');
      worker.kill('recycled');
    } else {
      this.#armIdleTimer();
    }
  }

  #armIdleTimer(): void {
    const { isPermanent, maxIdleMs, log, lane } = this.#settings;
    clearTimeout(this.#timer);
    if (isPermanent) return;
    this.#timer = setTimeout(() => {
      const processId = this.#process?.processId;
      log.info({ lane, processId }, 'ending an idle render worker');
      this.#process?.kill('idle');
    }, maxIdleMs).unref();
  }

  /** Schedules the start of a worker, unless the slot has one. */
  #ensureWorker(): void {
    const startWorker = this.#startWorker;
    if (startWorker === undefined || this.#stopping.signal.aborted) return;
    if (this.#process !== undefined || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#startProcess(startWorker);
    }, this.#delayMs);
  }

  get #delayMs(): number {
    if (this.#failures === 0) return 0;
    return Math.min(FIRST_DELAY_MS * 2 ** (this.#failures - 1), MAX_DELAY_MS);
  }

  #startProcess(startWorker: StartWorker): WorkerProcess {
    const worker = startWorker((ending) => {
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
    this.#wake?.();
  }

  #onEnd(worker: WorkerProcess, ending: string): void {
    const { counters, log, lane, isPermanent } = this.#settings;
    this.#process = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#startWorker === undefined || this.#stopping.signal.aborted) return;
    const { killReason: reason, wasReady, processId, jobsDone, rssBytes } = worker;
    const details = { lane, processId, ending, reason, jobsDone, rssBytes };
    if (reason === 'recycled') {
      counters.recycles += 1;
      log.info(details, 'recycled render worker ended');
    } else if (reason !== 'idle') {
      if (reason !== undefined) counters.kills += 1;
      counters.restarts += 1;
      if (!wasReady) this.#failures += 1;
      const delayMs = this.#delayMs;
      log.warn({ ...details, delayMs }, 'render worker ended; replacing it');
    }
    // A job may have started to wait while the idle worker ended.
    if (isPermanent || reason !== 'idle' || this.#wake) this.#ensureWorker();
  }
}
