import { setTimeout as sleep } from 'node:timers/promises';
import { epochMs, type LoadResponse, type LoadResult } from '../harness/load.ts';
import { LoadGenerator } from '../harness/load-generator.ts';
import { readCpuSeconds, watchOthers } from '../harness/process-numbers.ts';
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
  /** What all else that runs on this machine has used, as a share of its cores. */
  readonly othersShare: number;
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
    return await measure(options, originals, service, generators);
  } finally {
    for (const generator of Object.values(generators)) generator.close();
    await service.stop();
  }
}

type Generators = Readonly<Record<'hits' | 'renders' | 'flood', LoadGenerator>>;

async function measure(
  options: OverloadOptions,
  originals: OverloadOriginals,
  { pid, origin }: Service,
  generators: Generators,
): Promise<OverloadRun> {
  const { phaseMs, rounds, factors, workers } = options;
  // Those that have not been asked for yet.
  const light = [...originals.lightPaths];
  const heavy = [...originals.heavyPaths];
  const hotPaths = light.splice(0, HOT_PATHS);

  /** As many clients as keep all workers busy; what was done in time. */
  const runClosed = async (paths: string[], clientsPerWorker: number, durationMs: number) => {
    const endMs = epochMs() + durationMs;
    const clients = clientsPerWorker * workers;
    const load = { kind: 'closed', origin, paths, clients, durationMs } as const;
    const { responses } = await generators.renders.run(load);
    paths.splice(0, responses.length);
    return responses.filter(({ startedMs, totalMs }) => startedMs + totalMs < endMs);
  };
  const runSteady = (
    generator: LoadGenerator,
    paths: readonly string[],
    perSecond: number,
    durationMs: number,
  ): Promise<LoadResult> => generator.run({ kind: 'steady', origin, paths, perSecond, durationMs });

  /** Arrivals that wait for no response. */
  const flood = (perSecond: number): Promise<LoadResult> => {
    const durationMs = phaseMs + 2 * HEAD_START_MS;
    const count = Math.ceil((perSecond * durationMs) / 1000);
    if (count > heavy.length) throw new Error(`There are no ${count} animations left.`);
    return runSteady(generators.flood, heavy.splice(0, count), perSecond, durationMs);
  };
  const measurePhase = async (factor: number, heavyPerSecond: number): Promise<Phase> => {
    await waitForRest(pid);
    const readOthersShare = watchOthers();
    const flooding = factor > 0 ? flood(heavyPerSecond) : undefined;
    if (flooding !== undefined) await sleep(HEAD_START_MS);
    const [hits, lightResponses] = await Promise.all([
      runSteady(generators.hits, hotPaths, HITS_PER_SECOND, phaseMs),
      runClosed(light, LIGHT_CLIENTS_PER_WORKER, phaseMs),
    ]);
    const heavyResult = await flooding;
    const othersShare = readOthersShare();
    return {
      factor,
      lengthMs: phaseMs,
      hits,
      light: lightResponses,
      heavy: heavyResult,
      othersShare,
    };
  };

  // Puts what is to be hit into the cache, and every code path to work once.
  for (const path of [...light.splice(0, 200), ...heavy.splice(0, 8), ...hotPaths]) {
    await fetchOk(origin, path);
  }
  await waitForRest(pid);
  const heavyAlone = await runClosed(heavy, HEAVY_CLIENTS_PER_WORKER, CAPACITY_MS);
  const heavyCapacityPerSecond = (served(heavyAlone).length * 1000) / CAPACITY_MS;
  const phases: Phase[] = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const factor of [0, ...factors]) {
      phases.push(await measurePhase(factor, heavyCapacityPerSecond * factor));
    }
  }
  const { isPreferred: isHitClientPreferred } = generators.hits;
  return { options, isHitClientPreferred, heavyCapacityPerSecond, heavyAlone, phases };
}

/** Waits until nothing of the phase before is left in the service. */
export async function waitForRest(pid: number): Promise<void> {
  const readTotal = (): number => sumOf(Object.values(readCpuSeconds(pid)), (part) => part);
  const deadlineMs = performance.now() + MAX_REST_WAIT_MS;
  for (;;) {
    const before = readTotal();
    await sleep(1_000);
    if (readTotal() - before < REST_SHARE) return;
    if (performance.now() > deadlineMs) throw new Error('The service does not come to rest.');
  }
}
