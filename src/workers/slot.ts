import { MediaError } from '../contract/errors.ts';
import type { MovingFacts } from '../formats/video/video-facts.ts';
import type { RangeReader, RenderBounds, RenderJob, RenderSlot } from '../pipeline/ports.ts';
import type { WorkerJob, WorkerResponse } from './protocol.ts';
import { lostWorker, type Outcome } from './running-job.ts';
import { overloaded, SlotWorker, type SlotWorkerOptions } from './slot-worker.ts';
import { LOST_WITH_STARTER } from './worker-starter.ts';

/** Most workers that may die under a job before the job has begun. */
const MAX_ATTEMPTS = 3;

/** Signals that a process's own faults do not raise. */
const KILLED_FROM_OUTSIDE: ReadonlySet<string> = new Set([
  'SIGKILL',
  'SIGTERM',
  'SIGINT',
  'SIGHUP',
]);

/** Time to notice the ends of workers that were killed at the same time, in milliseconds. */
const NOTICE_MS = 1_000;

/** A CPU slot, which runs one job at a time in its worker. */
export class Slot implements RenderSlot {
  readonly #options: SlotWorkerOptions;
  readonly worker: SlotWorker;

  constructor(options: SlotWorkerOptions) {
    this.#options = options;
    this.worker = new SlotWorker(options);
  }

  get isReady(): boolean {
    return this.worker.process?.isUsable ?? false;
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

  async #do(command: WorkerJob, bounds: RenderBounds): Promise<WorkerResponse> {
    try {
      return await this.#runTwice(command, bounds);
    } finally {
      this.worker.rest();
    }
  }

  /**
   * Runs a job, and once more if its worker ended: that one may have been killed from outside, by the kernel, short of
   * memory, or by an operator. Only the end of the second, which has done no other job, shows that the job is to blame.
   * If the system kills that worker too, and others with it, the blame remains unknown.
   */
  async #runTwice(command: WorkerJob, bounds: RenderBounds): Promise<WorkerResponse> {
    const { lane, log } = this.#options;
    const first = await this.#run(command, bounds);
    if (first.kind !== 'lost') return first;
    const { ending } = first;
    log.warn({ lane, ending }, 'a job whose render worker has ended is retried in a fresh one');
    const deaths = this.#countDeaths();
    const again = await this.#run(command, bounds);
    if (again.kind !== 'lost') return again;
    if (again.ending === LOST_WITH_STARTER) throw overloaded(new Error(again.ending));
    if (!KILLED_FROM_OUTSIDE.has(again.ending)) throw lostWorker(again.ending);
    await new Promise((resolve) => setTimeout(resolve, NOTICE_MS));
    if (this.#countDeaths() - deaths <= 1) throw lostWorker(again.ending);
    throw overloaded(new Error('Render workers are killed from outside.'));
  }

  /** Counts the workers of the pool that have ended without being told to. */
  #countDeaths(): number {
    const { restarts, kills } = this.#options.shared.counters;
    return restarts - kills;
  }

  /** Runs a job in a living worker; an idle one may have died, which is not the job's fault. */
  async #run(
    command: WorkerJob,
    bounds: RenderBounds,
  ): Promise<Exclude<Outcome, { readonly kind: 'not begun' }>> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      const worker = await this.worker.ready(bounds.signal);
      const outcome = await worker.run(command, bounds);
      if (outcome.kind !== 'not begun') return outcome;
    }
    throw overloaded(new Error('No render worker lived to begin the job.'));
  }
}

/** Returns the error of a job's response; a worker's unknown failure is ours, logged as no `MediaError`, and a 500. */
function failureOf(response: WorkerResponse): Error {
  if (response.kind !== 'failed') return new Error(`"${response.kind}" is of another job.`);
  const { code, detail } = response;
  const cause = new Error(detail);
  return code === 'INTERNAL_ERROR' ? cause : new MediaError(code, { cause });
}
