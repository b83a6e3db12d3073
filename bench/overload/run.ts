import { setTimeout as sleep } from 'node:timers/promises';
import { epochMs, type LoadResult } from '../harness/load.ts';
import { LoadGenerator } from '../harness/load-generator.ts';
import { readTreeCpuSeconds, watchMachine } from '../harness/process-numbers.ts';
import { fetchOk, startService, useTemporaryFolder } from '../harness/service.ts';
import { ALONE, type Experiment, type Traffic, withStatus } from './experiments.ts';
import { drawOriginals, type Sort } from './originals.ts';

interface RunOptions {
  /** Length of each phase. */
  readonly phaseMs: number;
  /** Number of turns: in each, every flood has a phase, and a phase has none. */
  readonly rounds: number;
  readonly workers: number;
}

interface Phase {
  readonly flood: string;
  /** Loads by sort; of closed loads, the responses within the phase. */
  readonly loads: Readonly<Partial<Record<Sort, LoadResult>>>;
  /** Share of the machine's cores that other processes used. */
  readonly othersShare: number;
}

export interface Run {
  readonly experiment: Experiment;
  readonly options: RunOptions;
  /** Animations a second without other load. */
  readonly capacity: number;
  /** Whether the process that requests hits runs at a higher priority. */
  readonly isHitClientPreferred: boolean;
  readonly phases: readonly Phase[];
}

const CAPACITY_MS = 12_000;
const CAPACITY_CLIENTS_PER_WORKER = 3;

/** Upper bounds of what a worker renders in a second: a closed loop that runs out of paths fails. */
const MOST_PER_SECOND = { light: 750, heavy: 15 };

/** Renders before the first phase: they let V8 compile, and fill the cache with hits. */
const WARM_UP = { hits: 20, light: 200, heavy: 8, costly: 0 };

/** The service rests while its processes use less than this share of a core. */
const REST_SHARE = 0.05;
const MAX_REST_WAIT_MS = 60_000;

/** Runs an experiment on the compiled service, with a process for the load of each sort. */
export function runExperiment(experiment: Experiment, options: RunOptions): Promise<Run> {
  const { phaseMs, rounds, workers } = options;
  const { measured, floods, headStartMs } = experiment;
  const floodMs = phaseMs + 2 * headStartMs;
  /** Upper bound of the requests of a sort. */
  const count = (sort: Sort): number => {
    const most = (traffic: Traffic, durationMs: number): number => {
      if (traffic.sort !== sort) return 0;
      const bound = sort === 'light' ? MOST_PER_SECOND.light : MOST_PER_SECOND.heavy;
      const perWorker = 'share' in traffic ? bound * traffic.share : bound;
      const perSecond = 'perSecond' in traffic ? traffic.perSecond : perWorker * workers;
      return Math.ceil((perSecond * durationMs) / 1_000) * rounds;
    };
    const phases = measured.map((traffic) => most(traffic, phaseMs) * (floods.length + 1));
    const flooded = floods.map(({ traffic }) => most(traffic, floodMs));
    return [...phases, ...flooded].reduce((sum, part) => sum + part, WARM_UP[sort]);
  };
  return useTemporaryFolder(async (folder) => {
    const paths = await drawOriginals(folder, {
      hits: WARM_UP.hits,
      light: count('light'),
      heavy: count('heavy') + (MOST_PER_SECOND.heavy * workers * CAPACITY_MS) / 1_000,
      costly: count('costly'),
    });
    const { pid, origin, stop } = await startService('overload-service', {
      STORAGE_DIR: folder,
      WORKERS: String(workers),
      CACHE_REVALIDATE_SECONDS: '86400', // a hit stays one during the run
    });
    const generators = {
      hits: new LoadGenerator('preferred'),
      light: new LoadGenerator('equal'),
      heavy: new LoadGenerator('equal'),
      costly: new LoadGenerator('equal'),
    };
    /** Drives traffic; a path is requested once, except those of hits. */
    const drive = async (traffic: Traffic, capacity: number, durationMs: number) => {
      const { sort } = traffic;
      const common = { origin, paths: paths[sort], durationMs };
      const perSecond = 'share' in traffic ? capacity * traffic.share : undefined;
      const endMs = epochMs() + durationMs;
      const result = await generators[sort].run(
        'clientsPerWorker' in traffic
          ? { ...common, clients: traffic.clientsPerWorker * workers }
          : { ...common, perSecond: perSecond ?? ('perSecond' in traffic ? traffic.perSecond : 0) },
      );
      if (sort !== 'hits') paths[sort].splice(0, result.responses.length);
      const isInTime = ({ startedMs, totalMs }: LoadResult['responses'][number]): boolean =>
        !('clientsPerWorker' in traffic) || startedMs + totalMs < endMs;
      return { ...result, responses: result.responses.filter(isInTime) };
    };
    const runPhase = async (flood: Experiment['floods'][number] | undefined, capacity: number) => {
      await waitForRest(pid);
      const readMachine = watchMachine();
      const flooding = flood && drive(flood.traffic, capacity, floodMs);
      if (flood !== undefined) await sleep(headStartMs);
      const results = await Promise.all(measured.map((it) => drive(it, capacity, phaseMs)));
      const loads: Partial<Record<Sort, LoadResult>> = {};
      for (const [index, { sort }] of measured.entries()) {
        const result = results[index];
        if (result !== undefined) loads[sort] = result;
      }
      if (flood !== undefined && flooding !== undefined) loads[flood.traffic.sort] = await flooding;
      return { flood: flood?.name ?? ALONE, loads, othersShare: readMachine().othersShare };
    };
    try {
      for (const sort of ['hits', 'light', 'heavy'] as const) {
        const practised = sort === 'hits' ? paths.hits : paths[sort].splice(0, WARM_UP[sort]);
        for (const path of practised) await fetchOk(origin, path);
      }
      await waitForRest(pid);
      const full = { sort: 'heavy', clientsPerWorker: CAPACITY_CLIENTS_PER_WORKER } as const;
      const { responses } = await drive(full, 0, CAPACITY_MS);
      const capacity = (withStatus(responses, 200).length * 1_000) / CAPACITY_MS;
      const phases: Phase[] = [];
      for (let round = 0; round < rounds; round += 1) {
        for (const flood of [undefined, ...floods]) phases.push(await runPhase(flood, capacity));
      }
      const isHitClientPreferred = generators.hits.isPreferred;
      return { experiment, options, capacity, isHitClientPreferred, phases };
    } finally {
      for (const generator of Object.values(generators)) generator.close();
      await stop();
    }
  });
}

async function waitForRest(pid: number): Promise<void> {
  const deadlineMs = performance.now() + MAX_REST_WAIT_MS;
  for (;;) {
    const before = readTreeCpuSeconds(pid);
    await sleep(1_000);
    if (readTreeCpuSeconds(pid) - before < REST_SHARE) return;
    if (performance.now() > deadlineMs) throw new Error('The service does not come to rest.');
  }
}
