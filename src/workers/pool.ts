import { fileURLToPath } from 'node:url';
import { type Lane, type Log, lanes, type Renderer } from '../pipeline/ports.ts';
import { readConfinement, type WorkerConfinement } from './confinement/report.ts';
import type { Sandbox } from './confinement/sandbox.ts';
import { ForkServer } from './fork-server/client.ts';
import type { FrameSource } from './job-requests.ts';
import { Slot, type StartWorker, type WorkerCounters } from './slot.ts';
import {
  VideoDecoder,
  type VideoDecoderSettings,
  type VideoSupport,
} from './video/video-decoder.ts';
import { stopped } from './worker-errors.ts';
import { WorkerProcess } from './worker-process.ts';

/** Replacements for tests. */
export interface PoolDoubles {
  readonly workerFile?: URL;
  readonly frames?: FrameSource;
  readonly maxJobs?: number;
  readonly maxRssBytes?: number;
  readonly maxIdleMs?: number;
}

export interface WorkerPoolOptions {
  readonly forkServerFile: URL;
  /** Maximum processes by lane. All light ones and one heavy one are permanent. */
  readonly workers: Readonly<Record<Lane, number>>;
  /** Private writable memory of a worker by lane, in bytes, if the system can limit it. */
  readonly memoryBytes: Readonly<Record<Lane, number>>;
  /** Complete environment of a worker, without secrets. */
  readonly environment: Readonly<Record<string, string>>;
  readonly log: Log;
  readonly videoDecoder: VideoDecoderSettings;
  readonly doubles?: PoolDoubles;
}

/** Light renders get most of a core; heavy ones, at 15, do not starve. The main process has priority over both. */
const NICENESS: Readonly<Record<Lane, number>> = { light: 5, heavy: 15 };

/** Jobs after which a worker is recycled, because of slow leaks; a start takes 0.2 s. */
const MAX_JOBS = 10_000;

/** Idle time of a heavy worker beyond the first: heavy renders arrive in bursts, and a start takes 0.3 s. */
const MAX_IDLE_MS = 60_000;

/**
 * Renders in pre-forked processes, one job at a time in each. A job past its deadline is killed with its process, since
 * sharp's timeout stops neither libimagequant nor libaom. If a process dies, its job is retried once.
 */
export class WorkerPool implements Renderer {
  readonly #options: WorkerPoolOptions;
  readonly #forkServer: ForkServer;
  readonly #decoder: VideoDecoder;
  readonly #counters = { restarts: 0, kills: 0, recycles: 0 };
  readonly slots: Readonly<Record<Lane, readonly Slot[]>>;
  #confinement: WorkerConfinement | undefined;
  #isStopped = false;

  constructor(options: WorkerPoolOptions) {
    const { forkServerFile, environment, doubles: { workerFile } = {} } = options;
    this.#options = options;
    this.#forkServer = new ForkServer(
      fileURLToPath(forkServerFile),
      environment,
      workerFile && fileURLToPath(workerFile),
    );
    this.#decoder = new VideoDecoder(options.videoDecoder, this.#forkServer, environment);
    this.slots = { light: this.#createSlots('light'), heavy: this.#createSlots('heavy') };
  }

  /**
   * Starts workers in the strongest sandbox that works. @throws Error if none starts, MediaError `OVERLOADED` if
   * stopped
   */
  async start(): Promise<void> {
    // Not awaited: only videos need the decoder.
    this.#decoder.find();
    try {
      await this.#startConfined();
    } catch (error) {
      const failure = this.#isStopped ? stopped() : error;
      this.stop();
      throw failure;
    }
  }

  async #startConfined(): Promise<void> {
    const refusals: string[] = [];
    for await (const sandbox of this.#forkServer.listSandboxes(refusals)) {
      try {
        await this.#startWith(sandbox);
        const [[light], [heavy]] = [this.processIdsOf('light'), this.processIdsOf('heavy')];
        this.#confinement = readConfinement(sandbox, refusals, { light, heavy });
        return;
      } catch (error) {
        if (this.#isStopped) throw error;
        refusals.push(`${sandbox.name}: ${error instanceof Error ? error.message : error}`);
        for (const slot of this.#allSlots) slot.cancelProbe();
        if (this.#forkServer.lossReason !== '') {
          refusals.push(`the fork server exited (${this.#forkServer.lossReason})`);
          break;
        }
      }
    }
    throw new Error(`Render workers do not start: ${refusals.join('; ')}`);
  }

  stop(): void {
    this.#isStopped = true;
    for (const slot of this.#allSlots) slot.stop();
    this.#decoder.stop();
    this.#forkServer.stop();
  }

  expectedWorkers(lane: Lane): number {
    return this.slots[lane].filter(({ hasWorker }) => hasWorker).length;
  }

  /** Process ids of live and starting workers, for tests and diagnostics. */
  get processIds(): readonly number[] {
    return lanes.flatMap((lane) => this.processIdsOf(lane));
  }

  processIdsOf(lane: Lane): readonly number[] {
    return this.slots[lane].flatMap(({ process }) => process?.processId ?? []);
  }

  readyProcessIdsOf(lane: Lane): readonly number[] {
    const ready = this.slots[lane].filter(({ isReady }) => isReady);
    return ready.flatMap(({ process }) => process?.processId ?? []);
  }

  /** Returns the resident memory of a lane's workers after their last jobs, in bytes. */
  rssBytesOf(lane: Lane): number {
    return this.slots[lane].reduce((sum, { process }) => sum + (process?.rssBytes ?? 0), 0);
  }

  get videoSupport(): Promise<VideoSupport> {
    return this.#decoder.support;
  }

  get counters(): WorkerCounters {
    return this.#counters;
  }

  get confinement(): WorkerConfinement | undefined {
    return this.#confinement;
  }

  get #allSlots(): readonly Slot[] {
    return [...this.slots.light, ...this.slots.heavy];
  }

  async #startWith(sandbox: Sandbox): Promise<void> {
    const permanent = { light: this.slots.light, heavy: this.slots.heavy.slice(0, 1) };
    const starts = lanes.flatMap((lane) =>
      permanent[lane].map((slot) => slot.probe(this.#starterOf(lane, sandbox))),
    );
    await Promise.all(starts);
    for (const lane of lanes) {
      for (const slot of this.slots[lane]) slot.enable(this.#starterOf(lane, sandbox));
    }
  }

  #starterOf(lane: Lane, sandbox: Sandbox): StartWorker {
    const { memoryBytes, log, doubles } = this.#options;
    const start = { sandbox, niceness: NICENESS[lane], memoryBytes: memoryBytes[lane] };
    const frames = doubles?.frames ?? this.#decoder;
    return (onEnd) => new WorkerProcess(this.#forkServer, start, frames, log, onEnd);
  }

  #createSlots(lane: Lane): readonly Slot[] {
    const { workers, memoryBytes, log, doubles = {} } = this.#options;
    const { maxJobs = MAX_JOBS, maxIdleMs = MAX_IDLE_MS } = doubles;
    const { maxRssBytes = recycleAboveBytes(memoryBytes[lane]) } = doubles;
    const counters = this.#counters;
    return Array.from({ length: workers[lane] }, (_, index) => {
      const isPermanent = lane === 'light' || index === 0;
      return new Slot({ lane, isPermanent, maxIdleMs, maxJobs, maxRssBytes, counters, log });
    });
  }
}

/** Memory in bytes above which a worker is recycled; one stayed at 137 MiB after 2 000 ordinary jobs. */
function recycleAboveBytes(memoryBytes: number): number {
  return Math.max(memoryBytes / 4, 192 * 1024 * 1024);
}
