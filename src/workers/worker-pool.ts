import { fileURLToPath } from 'node:url';
import { MediaError } from '../contract/errors.ts';
import type { Lane, Log, Renderer, RenderOptions } from '../pipeline/ports.ts';
import type { RenderJob } from '../pipeline/render/render-job.ts';
import { type Confinement, readConfinement } from './confinement/confinement.ts';
import type { WorkingWay } from './confinement/ways.ts';
import { type SharedByLanes, type WorkerCounters, WorkerLane } from './lane.ts';
import { runJob } from './run-job.ts';
import { stopped } from './worker-failures.ts';
import { WorkerProcess } from './worker-process.ts';
import { WorkerStarter } from './worker-starter.ts';

/** Compiled entries of processes. */
export interface WorkerFiles {
  /** Entry of the process that starts workers. */
  readonly starterFile: URL;
  /** Replaces the entry of the render worker. */
  readonly workerFile?: URL;
}

/** Options of the pool. */
export interface WorkerRendererOptions extends WorkerFiles {
  /** Most processes of each lane. All light ones are kept, and one heavy one. */
  readonly workers: Readonly<Record<Lane, number>>;
  /** Private writable memory of a worker by lane, in bytes, if the system can bound it. */
  readonly memoryBytes: Readonly<Record<Lane, number>>;
  /** Whole environment of a worker; without secrets. */
  readonly environment: Readonly<Record<string, string>>;
  readonly log: Log;
  /** Jobs after which a worker is replaced. */
  readonly maxJobs?: number;
  /** Resident memory after a job from which on a worker is replaced, in bytes. */
  readonly maxRssBytes?: number;
  /** Idle time after which a heavy worker beyond the first ends, in milliseconds. */
  readonly maxIdleMs?: number;
}

type Lanes = Readonly<Record<Lane, WorkerLane>>;

/** Light renders have most of a core beside heavy ones, which at 15 never starve; the main process goes first. */
const NICENESS: Readonly<Record<Lane, number>> = { light: 5, heavy: 15 };

/** Against slow leaks; a replacement of 0.2 s makes this free. */
const MAX_JOBS = 10_000;

/** Share of the memory bound that a worker may keep between two jobs, */
const MAX_RSS_SHARE = 1 / 4;

/** or this, if that is less: after 2 000 ordinary jobs, a worker had 137 MiB, and stayed there. */
const MIN_WORN_RSS_BYTES = 192 * 1024 * 1024;

/** Heavy renders come in bursts; a worker starts in a third of a second. */
const MAX_IDLE_MS = 60_000;

/** Share of light workers (one for every core) that heavy ones get if they cannot have a lower priority. */
const HEAVY_SHARE_WITHOUT_PRIORITY = 1 / 2;

const LOST_MESSAGE = 'a job whose render worker has ended is retried in a fresh one';

/**
 * Renders in a pool of pre-forked processes, one job each at a time, each bound to a lane for life. Both lanes may have
 * a process for every core; the system shares the cores among them by niceness. A job past its deadline is killed with
 * its process (sharp's own timeout stops neither libimagequant nor libaom); a process that dies is replaced, and its
 * job retried once.
 */
export class WorkerPool implements Renderer {
  readonly #options: WorkerRendererOptions;
  readonly #starter: WorkerStarter;
  readonly #shared: SharedByLanes = {
    counters: { restarts: 0, kills: 0, recycles: 0 },
    retiring: undefined,
  };
  #lanes: Lanes | undefined;
  #confinement: Confinement | undefined;
  #hasPriorities = true;
  #isStopped = false;

  constructor(options: WorkerRendererOptions) {
    const { workerFile, starterFile, environment } = options;
    this.#options = options;
    this.#starter = new WorkerStarter({
      starterFile: fileURLToPath(starterFile),
      workerFile: workerFile && fileURLToPath(workerFile),
      environment,
    });
  }

  /**
   * Starts the workers in the strongest sandbox that works, and waits until all are ready.
   *
   * @throws Error if one cannot start, MediaError `OVERLOADED` if the pool is stopped meanwhile
   */
  async start(): Promise<void> {
    try {
      await this.#startConfined();
    } catch (error) {
      this.#starter.stop();
      throw this.#isStopped ? stopped() : error;
    }
  }

  async #startConfined(): Promise<void> {
    let failure: unknown;
    for await (const way of this.#starter.findWays()) {
      try {
        return await this.#startWith(way);
      } catch (error) {
        if (this.#isStopped) throw error;
        failure = error;
        const details = { err: error, by: way.name };
        this.#options.log.warn(details, 'the render workers do not start so confined');
      }
    }
    throw failure;
  }

  /** Ends all workers at once, busy ones too. */
  stop(): void {
    this.#isStopped = true;
    this.#lanes?.light.stop();
    this.#lanes?.heavy.stop();
    this.#starter.stop();
  }

  /**
   * Concurrent renders by lane. Light ones may take all cores, and so may heavy ones if their processes have a lower
   * priority; otherwise heavy ones have half of the cores.
   */
  get slots(): Readonly<Record<Lane, number>> {
    const { light, heavy } = this.#options.workers;
    if (this.#hasPriorities) return { light, heavy };
    const share = Math.max(1, Math.floor(light * HEAVY_SHARE_WITHOUT_PRIORITY));
    return { light, heavy: Math.min(heavy, share) };
  }

  /** Returns the lane's current target for the number of workers. */
  wantedOf(lane: Lane): number {
    return this.#lanes?.[lane].wanted ?? this.#leastOf(lane);
  }

  #leastOf(lane: Lane): number {
    const { light, heavy } = this.#options.workers;
    return lane === 'light' ? light : Math.min(1, heavy);
  }

  /** Process ids of the living workers, including starting ones that have a process; for tests and diagnostics. */
  get processIds(): readonly number[] {
    return [...this.processIdsOf('light'), ...this.processIdsOf('heavy')];
  }

  processIdsOf(lane: Lane): readonly number[] {
    return this.#lanes?.[lane].processIds ?? [];
  }

  /** Returns the process ids of a lane's idle and busy workers. */
  readyProcessIdsOf(lane: Lane): readonly number[] {
    return this.#lanes?.[lane].readyProcessIds ?? [];
  }

  /** Returns the resident memory of a lane's workers, as reported by them, in bytes. */
  rssBytesOf(lane: Lane): number {
    return this.#lanes?.[lane].rssBytes ?? 0;
  }

  get counters(): WorkerCounters {
    return this.#shared.counters;
  }

  /** Restrictions of the workers; `undefined` before the start. */
  get confinement(): Confinement | undefined {
    return this.#confinement;
  }

  async render(original: Uint8Array, job: RenderJob, options: RenderOptions): Promise<Uint8Array> {
    const { signal, lane: name, ...times } = options;
    const lane = this.#lanes?.[name];
    if (lane === undefined) throw new Error('The render workers are not started.');
    const response = await runJob({ original, job }, { signal, ...times }, lane, {
      // Workers that have ended without being told to.
      countDeaths: () => this.counters.restarts - this.counters.kills,
      onLost: (ending) => this.#options.log.warn({ lane: name, ending }, LOST_MESSAGE),
    });
    if (response.kind === 'rendered') return response.body;
    const cause = new Error(response.detail);
    // A worker's unknown failure is ours: not a MediaError, so that it is logged and becomes a 500.
    throw response.code === 'INTERNAL_ERROR' ? cause : new MediaError(response.code, { cause });
  }

  async #startWith(way: WorkingWay): Promise<void> {
    const lanes: Lanes = {
      light: this.#createLane('light', way),
      heavy: this.#createLane('heavy', way),
    };
    this.#lanes = lanes;
    if (this.#isStopped) this.stop(); // stopped before the lanes existed
    try {
      await Promise.all([lanes.light.start(), lanes.heavy.start()]);
    } catch (error) {
      lanes.light.stop();
      lanes.heavy.stop();
      throw error;
    }
    this.#confinement = readConfinement(way, {
      light: lanes.light.processIds[0],
      heavy: lanes.heavy.processIds[0],
    });
    this.#noticePriorities(this.#confinement);
  }

  #noticePriorities({ priority }: Confinement): void {
    const { workers, log } = this.#options;
    if (workers.light === 0 || workers.heavy === 0) return;
    this.#hasPriorities = (priority.heavy ?? 0) > (priority.light ?? 0);
    if (this.#hasPriorities) return;
    const slots = this.slots;
    const message =
      'the system does not let heavy renders have a lower priority than light ones: they get half of the cores';
    log.warn({ priority, slots }, message);
  }

  #createLane(lane: Lane, way: WorkingWay): WorkerLane {
    const { memoryBytes, log } = this.#options;
    const wornRssBytes = Math.max(memoryBytes[lane] * MAX_RSS_SHARE, MIN_WORN_RSS_BYTES);
    const { maxJobs = MAX_JOBS, maxRssBytes = wornRssBytes } = this.#options;
    const { maxIdleMs = MAX_IDLE_MS } = this.#options;
    return new WorkerLane({
      lane,
      least: this.#leastOf(lane),
      most: () => this.slots[lane],
      maxIdleMs,
      launch: (events) =>
        new WorkerProcess(
          {
            starter: this.#starter,
            way,
            niceness: NICENESS[lane],
            memoryBytes: memoryBytes[lane],
            log,
          },
          events,
        ),
      isWorn: ({ jobsDone, rssBytes }) => jobsDone >= maxJobs || rssBytes > maxRssBytes,
      shared: this.#shared,
      log,
    });
  }
}
