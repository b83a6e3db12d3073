import { setTimeout as sleep } from 'node:timers/promises';
import { epochMs, type Load, type LoadResponse, type LoadResult } from '../harness/load.ts';
import { LoadGenerator } from '../harness/load-generator.ts';
import {
  type CpuSeconds,
  readCpuSeconds,
  readMachineCpuSeconds,
  readProcess,
} from '../harness/process-numbers.ts';
import { sumOf } from '../harness/report.ts';
import { fetchOk, type Service, startService } from '../harness/service.ts';
import type { OverloadOriginals, PathCounts } from './originals.ts';

/** What is chosen for a run. */
export interface OverloadOptions {
  /** Length of each phase that is compared. */
  readonly phaseMs: number;
  /** How often the phases alternate. */
  readonly rounds: number;
  readonly workers: number;
  /** Animated renders arrive at so many times the capacity, in phases of their own; the greatest last. */
  readonly factors: readonly number[];
}

/** What was measured in one phase. */
export interface Phase {
  /** Times the capacity of animated renders; 0 while the others are alone. */
  readonly factor: number;
  readonly lengthMs: number;
  readonly hits: LoadResult;
  /** Light renders that were done within the phase. */
  readonly light: readonly LoadResponse[];
  readonly heavy: LoadResult | undefined;
  readonly mainPeakBytes: number;
  /** CPU seconds; `others`: of all else that runs on this machine. */
  readonly cpu: CpuSeconds & { readonly generators: number; readonly others: number };
}

/** All that a run has brought to light. */
export interface OverloadRun {
  readonly options: OverloadOptions;
  /** Whether hits were asked for by a process that ran before all others. */
  readonly isHitClientPreferred: boolean;
  /** Animated renders a second, with nothing else to do. */
  readonly heavyCapacityPerSecond: number;
  /** Their responses then. */
  readonly heavyAlone: readonly LoadResponse[];
  readonly phases: readonly Phase[];
}

const HITS_PER_SECOND = 50;
const HOT_PATHS = 20;
const LIGHT_CLIENTS_PER_WORKER = 8;
const HEAVY_CLIENTS_PER_WORKER = 3;
const CAPACITY_MS = 12_000;

/** The overload is there before what it is to disturb, and stays longer. */
const HEAD_START_MS = 1_500;

const MEMORY_SAMPLE_MS = 100;

/** A service whose processes use less than this share of a core is at rest. */
const REST_SHARE = 0.05;
const MAX_REST_WAIT_MS = 60_000;

/** How many requests of each sort a run may need; a closed loop that runs out fails. */
export function countPaths({ phaseMs, rounds, factors }: OverloadOptions): PathCounts {
  const [mostLightPerSecond, mostHeavyPerSecond] = [1_500, 25];
  const floodSeconds = (phaseMs + 2 * HEAD_START_MS) / 1_000;
  const times = sumOf(factors, (factor) => factor);
  return {
    light: (mostLightPerSecond * (1 + factors.length) * rounds * phaseMs) / 1_000,
    heavy: mostHeavyPerSecond * (CAPACITY_MS / 1_000 + times * rounds * floodSeconds),
  };
}

/** Responses with the image that was asked for. */
export function served(responses: readonly LoadResponse[]): readonly LoadResponse[] {
  return responses.filter(({ status }) => status === 200);
}

/**
 * Measures hits and light renders, alone and while animated renders come at many times the capacity,
 * in turn and on one running service.
 */
export async function runOverload(
  options: OverloadOptions,
  originals: OverloadOriginals,
): Promise<OverloadRun> {
  const service = await startService('overload-service', {
    STORAGE_DIR: originals.folder,
    WORKERS: String(options.workers),
    CACHE_REVALIDATE_SECONDS: '86400', // a hit stays one, however long it is measured
  });
  const generators = {
    hits: new LoadGenerator('preferred'),
    renders: new LoadGenerator('equal'),
    flood: new LoadGenerator('equal'),
  };
  try {
    return await new Bench(options, originals, service, generators).run();
  } finally {
    for (const generator of Object.values(generators)) generator.close();
    await service.stop();
  }
}

class Bench {
  readonly #options: OverloadOptions;
  readonly #service: Service;
  readonly #generators: Readonly<Record<'hits' | 'renders' | 'flood', LoadGenerator>>;
  readonly #hotPaths: readonly string[];
  /** Those that have not been asked for yet. */
  readonly #light: string[];
  readonly #heavy: string[];

  constructor(
    options: OverloadOptions,
    originals: OverloadOriginals,
    service: Service,
    generators: Readonly<Record<'hits' | 'renders' | 'flood', LoadGenerator>>,
  ) {
    this.#options = options;
    this.#service = service;
    this.#generators = generators;
    this.#light = [...originals.lightPaths];
    this.#heavy = [...originals.heavyPaths];
    this.#hotPaths = this.#light.splice(0, HOT_PATHS);
  }

  async run(): Promise<OverloadRun> {
    const { rounds, factors } = this.#options;
    await this.#warmUp();
    await this.#rest();
    const heavyAlone = await this.#closed(this.#heavy, HEAVY_CLIENTS_PER_WORKER, CAPACITY_MS);
    const heavyCapacityPerSecond = (served(heavyAlone).length * 1000) / CAPACITY_MS;
    const phases: Phase[] = [];
    for (let round = 0; round < rounds; round += 1) {
      for (const factor of [0, ...factors]) {
        await this.#rest();
        phases.push(await this.#measure(factor, heavyCapacityPerSecond * factor));
      }
    }
    return {
      options: this.#options,
      isHitClientPreferred: this.#generators.hits.isPreferred,
      heavyCapacityPerSecond,
      heavyAlone,
      phases,
    };
  }

  /** Puts what is to be hit into the cache, and every code path to work once. */
  async #warmUp(): Promise<void> {
    const others = [...this.#light.splice(0, 200), ...this.#heavy.splice(0, 8)];
    for (const path of [...others, ...this.#hotPaths]) await fetchOk(this.#service.origin, path);
  }

  async #measure(factor: number, heavyPerSecond: number): Promise<Phase> {
    const { phaseMs } = this.#options;
    const { pid, origin } = this.#service;
    const before = this.#readCpu();
    let mainPeakBytes = 0;
    const watch = setInterval(() => {
      mainPeakBytes = Math.max(mainPeakBytes, readProcess(pid)?.residentBytes ?? 0);
    }, MEMORY_SAMPLE_MS);
    const flood = factor > 0 ? this.#flood(heavyPerSecond) : undefined;
    if (flood !== undefined) await sleep(HEAD_START_MS);
    const hotLoad: Load = {
      kind: 'steady',
      origin,
      paths: this.#hotPaths,
      perSecond: HITS_PER_SECOND,
      durationMs: phaseMs,
    };
    const [hits, light] = await Promise.all([
      this.#generators.hits.run(hotLoad),
      this.#closed(this.#light, LIGHT_CLIENTS_PER_WORKER, phaseMs),
    ]);
    const heavy = await flood;
    clearInterval(watch);
    const after = this.#readCpu();
    const cpu = {
      main: after.main - before.main,
      workers: after.workers - before.workers,
      generators: after.generators - before.generators,
      others: after.others - before.others,
    };
    return { factor, lengthMs: phaseMs, hits, light, heavy, mainPeakBytes, cpu };
  }

  /** Arrivals that wait for no response. */
  #flood(perSecond: number): Promise<LoadResult> {
    const durationMs = this.#options.phaseMs + 2 * HEAD_START_MS;
    const count = Math.ceil((perSecond * durationMs) / 1000);
    if (count > this.#heavy.length) throw new Error(`There are no ${count} animations left.`);
    const paths = this.#heavy.splice(0, count);
    const { origin } = this.#service;
    return this.#generators.flood.run({ kind: 'steady', origin, paths, perSecond, durationMs });
  }

  /** As many clients as keep all workers busy; what was done in time. */
  async #closed(
    paths: string[],
    clientsPerWorker: number,
    durationMs: number,
  ): Promise<readonly LoadResponse[]> {
    const endMs = epochMs() + durationMs;
    const clients = clientsPerWorker * this.#options.workers;
    const { origin } = this.#service;
    const load = { kind: 'closed', origin, paths, clients, durationMs } as const;
    const { responses } = await this.#generators.renders.run(load);
    paths.splice(0, responses.length);
    return responses.filter(({ startedMs, totalMs }) => startedMs + totalMs < endMs);
  }

  /** Waits until nothing of the phase before is left in the service. */
  async #rest(): Promise<void> {
    const readTotal = (): number => {
      const { main, workers } = readCpuSeconds(this.#service.pid);
      return main + workers;
    };
    const deadlineMs = performance.now() + MAX_REST_WAIT_MS;
    for (;;) {
      const before = readTotal();
      await sleep(1_000);
      if (readTotal() - before < REST_SHARE) return;
      if (performance.now() > deadlineMs) throw new Error('The service does not come to rest.');
    }
  }

  #readCpu(): Phase['cpu'] {
    const { main, workers } = readCpuSeconds(this.#service.pid);
    const generators = sumOf(Object.values(this.#generators), ({ cpuSeconds }) => cpuSeconds);
    const others = readMachineCpuSeconds() - main - workers - generators;
    return { main, workers, generators, others };
  }
}
