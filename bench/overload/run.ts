import { setTimeout as sleep } from 'node:timers/promises';
import type { Load, LoadResult } from '../harness/load.ts';
import { LoadGenerator } from '../harness/load-generator.ts';
import { Originals } from '../harness/originals.ts';
import { readTreeCpuSeconds, watchMachine } from '../harness/process-numbers.ts';
import { fetchOk, startService, useTemporaryDirectory } from '../harness/service.ts';
import type { Experiment, Phase, Sort, Traffic } from './experiments.ts';

/** Number of rounds, each with a phase without the flood and one with it. */
export const ROUNDS = 2;

const CAPACITY_MS = 12_000;
const CAPACITY_CLIENTS_PER_WORKER = 3;

/** Upper bounds of a worker's renders a second: a closed loop that runs out of paths fails. */
const MAX_PER_SECOND = { light: 750, heavy: 15 };

/** Number of renders before the first phase, during which V8 compiles and the cache fills. */
const WARM_UP = { hits: 20, light: 200, heavy: 8 };

/** Fraction of a core below which the service counts as idle. */
const IDLE_FRACTION = 0.05;
const MAX_IDLE_WAIT_MS = 60_000;

/** Runs an experiment on the compiled service, with a process for the load of each sort. */
export function runExperiment(
  { measured, flood, headStartMs }: Experiment,
  phaseMs: number,
  workers: number,
) {
  const floodMs = phaseMs + 2 * headStartMs;
  return useTemporaryDirectory(async (directory) => {
    const originals = new Originals(directory);
    const seconds = (2 * ROUNDS * floodMs) / 1_000;
    const multiple = 'ofCapacity' in flood ? flood.ofCapacity : 1;
    const list = async (kind: Parameters<Originals['list']>[0], maxPerSecond: number) =>
      (await originals.list(kind, maxPerSecond * seconds)).map((it) => it.darkroomPath);
    const light = await list('avatars', MAX_PER_SECOND.light * workers);
    const paths: Readonly<Record<Sort, string[]>> = {
      hits: light.splice(0, WARM_UP.hits), // renderings that the warm-up has cached
      light,
      heavy: await list('stickers', MAX_PER_SECOND.heavy * workers * multiple),
      costly: await list('costly', 1),
    };
    const { pid, origin, stop } = await startService('overload-service', {
      STORAGE_DIR: directory,
      WORKERS: String(workers),
      CACHE_REVALIDATE_SECONDS: '86400', // hits remain hits during the run
    });
    const generators: Readonly<Record<Sort, LoadGenerator>> = {
      hits: new LoadGenerator(true),
      light: new LoadGenerator(),
      heavy: new LoadGenerator(),
      costly: new LoadGenerator(),
    };
    /** Rendered animations a second without other load. */
    let capacity = 0;
    /** Sends traffic; each path is requested once, except paths of hits. */
    const drive = async (traffic: Traffic, durationMs: number): Promise<LoadResult> => {
      const { sort } = traffic;
      const common = { origin, paths: paths[sort], durationMs };
      const load: Load =
        'clientsPerWorker' in traffic
          ? { ...common, clients: traffic.clientsPerWorker * workers }
          : {
              ...common,
              perSecond:
                'ofCapacity' in traffic ? capacity * traffic.ofCapacity : traffic.perSecond,
            };
      const result = await generators[sort].run(load);
      if (sort !== 'hits') paths[sort].splice(0, result.responses.length);
      if ('perSecond' in load) return result;
      const inTime = result.responses.filter((it) => it.startedMs + it.totalMs < durationMs);
      return { ...result, responses: inTime };
    };
    const runPhase = async (isFlooded: boolean): Promise<Phase> => {
      await waitUntilIdle(pid);
      const readMachine = watchMachine();
      const flooding = isFlooded ? drive(flood, floodMs) : undefined;
      if (isFlooded) await sleep(headStartMs);
      const loads: Partial<Record<Sort, LoadResult>> = {};
      const measure = async (traffic: Traffic): Promise<void> => {
        loads[traffic.sort] = await drive(traffic, phaseMs);
      };
      await Promise.all(measured.map(measure));
      if (flooding !== undefined) loads[flood.sort] = await flooding;
      return { loads, othersFraction: readMachine().othersFraction };
    };
    try {
      for (const path of paths.hits) await fetchOk(origin, path);
      for (const sort of ['light', 'heavy'] as const) {
        for (const path of paths[sort].splice(0, WARM_UP[sort])) await fetchOk(origin, path);
      }
      await waitUntilIdle(pid);
      const full = { sort: 'heavy', clientsPerWorker: CAPACITY_CLIENTS_PER_WORKER } as const;
      const { responses } = await drive(full, CAPACITY_MS);
      capacity = (responses.filter(({ status }) => status === 200).length * 1_000) / CAPACITY_MS;
      const [quiet, flooded]: [Phase[], Phase[]] = [[], []];
      for (let round = 0; round < ROUNDS; round += 1) {
        quiet.push(await runPhase(false));
        flooded.push(await runPhase(true));
      }
      return { capacity, quiet, flooded, isHitClientPreferred: generators.hits.isPreferred };
    } finally {
      for (const generator of Object.values(generators)) generator.close();
      await stop();
    }
  });
}

async function waitUntilIdle(pid: number): Promise<void> {
  const deadlineMs = performance.now() + MAX_IDLE_WAIT_MS;
  for (;;) {
    const before = readTreeCpuSeconds(pid);
    await sleep(1_000);
    if (readTreeCpuSeconds(pid) - before < IDLE_FRACTION) return;
    if (performance.now() > deadlineMs) throw new Error('The service did not become idle.');
  }
}
