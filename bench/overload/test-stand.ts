import { setTimeout as sleep } from 'node:timers/promises';
import { epochMs, type LoadResponse, type LoadResult } from '../harness/load.ts';
import { LoadGenerator } from '../harness/load-generator.ts';
import { readTreeCpuSeconds, watchMachine } from '../harness/process-numbers.ts';
import { fetchOk, type Service, startService } from '../harness/service.ts';
import { useTemporaryFolder } from '../harness/temporary-folder.ts';
import { drawOriginals, type OverloadOriginals, type Sort } from './originals.ts';

export interface StandOptions {
  /** Length of each phase that is compared. */
  readonly phaseMs: number;
  /** How often the phases alternate. */
  readonly rounds: number;
  readonly workers: number;
}

/** What animations take with nothing else to do. */
export interface Capacity {
  readonly perSecond: number;
  /** Those that were done in time. */
  readonly responses: readonly LoadResponse[];
}

/** What came beside what a phase measures. */
export interface Beside {
  /** Undefined where nothing was to come. */
  readonly flood: LoadResult | undefined;
  /** What all else that runs on this machine has used, as a share of its cores. */
  readonly othersShare: number;
}

const CAPACITY_MS = 12_000;
const CAPACITY_CLIENTS_PER_WORKER = 3;

/** More than a worker ends in a second; a closed loop that runs out of requests fails. */
const MOST_PER_SECOND = { light: 750, heavy: 15 };

/** Puts every code path to work, and into the cache what is to be hit. */
const WARM_UP = { light: 200, heavy: 8 };
const HOT_PATHS = 20;

/** A service whose processes use less than this share of a core is at rest. */
const REST_SHARE = 0.05;
const MAX_REST_WAIT_MS = 60_000;

/** Responses with the image that was asked for. */
export function served(responses: readonly LoadResponse[]): readonly LoadResponse[] {
  return responses.filter(({ status }) => status === 200);
}

/** The service as a process of its own, beside a process for each sort of requests. */
export class TestStand {
  readonly animationBytes: readonly number[];
  readonly #service: Service;
  readonly #workers: number;
  /** Those that were not asked for yet. */
  readonly #paths: OverloadOriginals['paths'];
  readonly #generators = {
    hits: new LoadGenerator('preferred'),
    light: new LoadGenerator('equal'),
    heavy: new LoadGenerator('equal'),
    costly: new LoadGenerator('equal'),
  };
  #hotPaths: readonly string[] = [];

  private constructor(service: Service, workers: number, originals: OverloadOriginals) {
    this.animationBytes = originals.animationBytes;
    this.#service = service;
    this.#workers = workers;
    this.#paths = originals.paths;
  }

  /**
   * Starts all of it, for as long as it is used.
   *
   * @param seconds for which light and animated renders are asked for, as fast as they are done
   * @param costly how many originals there must be that take as long as a render may
   */
  static use<Result>(
    workers: number,
    seconds: { readonly light: number; readonly heavy: number },
    costly: number,
    use: (stand: TestStand, capacity: Capacity) => Promise<Result>,
  ): Promise<Result> {
    const most = (sort: 'light' | 'heavy', ofSeconds: number): number =>
      WARM_UP[sort] + MOST_PER_SECOND[sort] * workers * ofSeconds;
    return useTemporaryFolder(async (folder) => {
      const originals = await drawOriginals(folder, {
        light: HOT_PATHS + most('light', seconds.light),
        heavy: most('heavy', seconds.heavy + CAPACITY_MS / 1_000),
        costly,
      });
      const service = await startService('overload-service', {
        STORAGE_DIR: folder,
        WORKERS: String(workers),
        CACHE_REVALIDATE_SECONDS: '86400', // a hit stays one, however long it is measured
      });
      const stand = new TestStand(service, workers, originals);
      try {
        return await use(stand, await stand.#measureCapacity());
      } finally {
        for (const generator of Object.values(stand.#generators)) generator.close();
        await service.stop();
      }
    });
  }

  /** Whether hits are asked for by a process that runs before all others. */
  get isHitClientPreferred(): boolean {
    return this.#generators.hits.isPreferred;
  }

  /** Sends new requests, so many at a time for each worker, and gives those that were done in time. */
  async runClosed(
    sort: Sort,
    clientsPerWorker: number,
    durationMs: number,
  ): Promise<readonly LoadResponse[]> {
    const { origin } = this.#service;
    const endMs = epochMs() + durationMs;
    const paths = this.#paths[sort];
    const clients = clientsPerWorker * this.#workers;
    const load = { kind: 'closed', origin, paths, clients, durationMs } as const;
    const { responses } = await this.#generators[sort].run(load);
    this.#take(sort, responses.length);
    return responses.filter(({ startedMs, totalMs }) => startedMs + totalMs < endMs);
  }

  /** Sends so many requests a second, whatever becomes of them: new ones, or the same again where they are to be hits. */
  runSteady(sort: Sort | 'hits', perSecond: number, durationMs: number): Promise<LoadResult> {
    const { origin } = this.#service;
    const count = Math.ceil((perSecond * durationMs) / 1000);
    const paths = sort === 'hits' ? this.#hotPaths : this.#take(sort, count);
    return this.#generators[sort].run({ kind: 'steady', origin, paths, perSecond, durationMs });
  }

  /**
   * Measures something as soon as nothing is left of the phase before.
   *
   * @param flood begins first, where there is one
   */
  async measurePhase<Result>(
    measure: () => Promise<Result>,
    headStartMs: number,
    flood: (() => Promise<LoadResult>) | undefined,
  ): Promise<Result & Beside> {
    await this.#waitForRest();
    const readMachine = watchMachine();
    const flooding = flood?.();
    if (flooding !== undefined) await sleep(headStartMs);
    const result = await measure();
    const flooded = await flooding;
    return { ...result, flood: flooded, othersShare: readMachine().othersShare };
  }

  async #measureCapacity(): Promise<Capacity> {
    this.#hotPaths = this.#take('light', HOT_PATHS);
    const warmUp = [...this.#take('light', WARM_UP.light), ...this.#take('heavy', WARM_UP.heavy)];
    for (const path of [...warmUp, ...this.#hotPaths]) await fetchOk(this.#service.origin, path);
    await this.#waitForRest();
    const responses = await this.runClosed('heavy', CAPACITY_CLIENTS_PER_WORKER, CAPACITY_MS);
    return { perSecond: (served(responses).length * 1000) / CAPACITY_MS, responses };
  }

  #take(sort: Sort, count: number): string[] {
    const paths = this.#paths[sort];
    if (count > paths.length) throw new Error(`There are no ${count} requests left.`);
    return paths.splice(0, count);
  }

  async #waitForRest(): Promise<void> {
    const { pid } = this.#service;
    const deadlineMs = performance.now() + MAX_REST_WAIT_MS;
    for (;;) {
      const before = readTreeCpuSeconds(pid);
      await sleep(1_000);
      if (readTreeCpuSeconds(pid) - before < REST_SHARE) return;
      if (performance.now() > deadlineMs) throw new Error('The service does not come to rest.');
    }
  }
}
