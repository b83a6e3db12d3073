import { setTimeout as sleep } from 'node:timers/promises';
import { epochMs } from '../harness/epoch.ts';
import { get, HttpClient } from '../harness/exchange.ts';
import { type Answer, completedWithin, type Load, type LoadResult } from '../harness/load.ts';
import { LoadGenerator } from '../harness/load-generator.ts';
import { readCpuSeconds, readMachineCpuSeconds, readProcess } from '../harness/process-numbers.ts';
import { type Service, startService } from '../harness/service.ts';
import { countServed, type OverloadOptions, type OverloadRun, type Phase } from './measurements.ts';
import type { OverloadOriginals } from './originals.ts';

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
export function countPaths({ phaseMs, rounds, factors }: OverloadOptions): {
  readonly light: number;
  readonly heavy: number;
} {
  const [mostLightPerSecond, mostHeavyPerSecond] = [1_500, 25];
  const floodSeconds = (phaseMs + 2 * HEAD_START_MS) / 1_000;
  const times = factors.reduce((sum, factor) => sum + factor, 0);
  return {
    light: (mostLightPerSecond * (1 + factors.length) * rounds * phaseMs) / 1_000,
    heavy: mostHeavyPerSecond * (CAPACITY_MS / 1_000 + times * rounds * floodSeconds),
  };
}

/**
 * Measures hits and light renders, alone and while animated renders come at many times the capacity,
 * in turn and on one running service.
 */
export async function runOverload(
  options: OverloadOptions,
  originals: OverloadOriginals,
): Promise<OverloadRun> {
  const service = await startService(
    {
      STORAGE_DIR: originals.folder,
      WORKERS: String(options.workers),
      CACHE_REVALIDATE_SECONDS: '86400', // a hit stays one, however long it is measured
    },
    options.logFile,
  );
  const generators = [
    new LoadGenerator('preferred'),
    new LoadGenerator('equal'),
    new LoadGenerator('equal'),
  ] as const;
  try {
    return await new Bench(options, originals, service, generators).run();
  } finally {
    for (const generator of generators) generator.close();
    await service.stop(5_000);
  }
}

class Bench {
  readonly #options: OverloadOptions;
  readonly #service: Service;
  readonly #generators: readonly [LoadGenerator, LoadGenerator, LoadGenerator];
  readonly #hotPaths: readonly string[];
  /** Those that nobody has asked for yet. */
  readonly #light: string[];
  readonly #heavy: string[];

  constructor(
    options: OverloadOptions,
    originals: OverloadOriginals,
    service: Service,
    generators: readonly [LoadGenerator, LoadGenerator, LoadGenerator],
  ) {
    this.#options = options;
    this.#service = service;
    this.#generators = generators;
    this.#light = [...originals.lightPaths];
    this.#heavy = [...originals.heavyPaths];
    this.#hotPaths = this.#light.splice(0, HOT_PATHS);
  }

  async run(): Promise<OverloadRun> {
    const { phaseMs, rounds } = this.#options;
    await this.#warmUp();
    await this.#rest();
    const quietHits = await this.#generators[0].run(this.#hits(phaseMs / 2));
    const heavy = await this.#measureHeavy();
    const phases: Phase[] = [];
    for (let round = 0; round < rounds; round += 1) {
      for (const factor of [0, ...this.#options.factors]) {
        await this.#rest();
        phases.push(await this.#measure(factor, heavy.perSecond * factor));
      }
    }
    return {
      options: this.#options,
      isHitClientPreferred: this.#generators[0].isPreferred,
      quietHits,
      heavyCapacityPerSecond: heavy.perSecond,
      heavyAlone: heavy.answers,
      phases,
    };
  }

  /** Puts what is to be hit into the store, and every code path to work once. */
  async #warmUp(): Promise<void> {
    const client = new HttpClient(this.#service.origin);
    const others = [...this.#light.splice(0, 200), ...this.#heavy.splice(0, 8)];
    for (const path of [...others, ...this.#hotPaths]) {
      const { status } = await client.ask(get(path));
      if (status !== 200) throw new Error(`${path} is answered with ${status}.`);
    }
    client.close();
  }

  async #measureHeavy() {
    const answers = await this.#closed(this.#heavy, HEAVY_CLIENTS_PER_WORKER, CAPACITY_MS);
    return { answers, perSecond: (countServed(answers) * 1000) / CAPACITY_MS };
  }

  async #measure(factor: number, heavyPerSecond: number): Promise<Phase> {
    const { phaseMs } = this.#options;
    const { pid } = this.#service;
    const before = this.#readCpu();
    let mainPeakBytes = 0;
    const watch = setInterval(() => {
      mainPeakBytes = Math.max(mainPeakBytes, readProcess(pid)?.residentBytes ?? 0);
    }, MEMORY_SAMPLE_MS);
    const flood = factor > 0 ? this.#flood(heavyPerSecond) : undefined;
    if (flood !== undefined) await sleep(HEAD_START_MS);
    const [hits, light] = await Promise.all([
      this.#generators[0].run(this.#hits(phaseMs)),
      this.#closed(this.#light, LIGHT_CLIENTS_PER_WORKER, phaseMs),
    ]);
    const heavy = await flood;
    clearInterval(watch);
    const after = this.#readCpu();
    return {
      factor,
      lengthMs: phaseMs,
      hits,
      light,
      heavy,
      mainPeakBytes,
      cpu: {
        main: after.main - before.main,
        workers: after.workers - before.workers,
        generators: after.generators - before.generators,
        others: after.others - before.others,
      },
    };
  }

  #hits(durationMs: number): Load {
    const { origin } = this.#service;
    return {
      kind: 'steady',
      origin,
      paths: this.#hotPaths,
      perSecond: HITS_PER_SECOND,
      durationMs,
    };
  }

  /** Arrivals that wait for no answer. */
  #flood(perSecond: number): Promise<LoadResult> {
    const durationMs = this.#options.phaseMs + 2 * HEAD_START_MS;
    const count = Math.ceil((perSecond * durationMs) / 1000);
    if (count > this.#heavy.length) throw new Error(`There are no ${count} animations left.`);
    const paths = this.#heavy.splice(0, count);
    const { origin } = this.#service;
    return this.#generators[2].run({ kind: 'steady', origin, paths, perSecond, durationMs });
  }

  /** As many clients as keep all workers busy; what was done in time. */
  async #closed(
    paths: string[],
    clientsPerWorker: number,
    durationMs: number,
  ): Promise<readonly Answer[]> {
    const beganMs = epochMs();
    const { answers } = await this.#generators[1].run({
      kind: 'closed',
      origin: this.#service.origin,
      paths,
      clients: clientsPerWorker * this.#options.workers,
      durationMs,
    });
    paths.splice(0, answers.length);
    const endMs = beganMs + durationMs;
    return completedWithin(answers, beganMs, endMs);
  }

  /** Waits until nothing of the phase before is left in the service. */
  async #rest(): Promise<void> {
    const total = (): number => {
      const { main, workers } = readCpuSeconds(this.#service.pid);
      return main + workers;
    };
    const deadlineMs = performance.now() + MAX_REST_WAIT_MS;
    for (;;) {
      const before = total();
      await sleep(1_000);
      if (total() - before < REST_SHARE) return;
      if (performance.now() > deadlineMs) throw new Error('The service does not come to rest.');
    }
  }

  #readCpu(): Phase['cpu'] {
    const { main, workers } = readCpuSeconds(this.#service.pid);
    const generators = this.#generators.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
    return {
      main,
      workers,
      generators,
      others: readMachineCpuSeconds() - main - workers - generators,
    };
  }
}
