import { get, HttpClient } from '../harness/exchange.ts';
import { readCpuSeconds } from '../harness/process-numbers.ts';
import { startService } from '../harness/service.ts';
import { generateTrace } from '../trace/trace.ts';
import { layOutOriginals, type ReplayOriginals } from './replay-originals.ts';
import { DEFAULT_SETUP } from './setup.ts';
import { simulate } from './simulate.ts';
import { createWorkload, type Workload } from './workload.ts';

/** What is chosen for a replay. */
export interface ReplayOptions {
  readonly seed: number;
  readonly requests: number;
  /** One run of the service with each. */
  readonly memories: readonly number[];
  readonly logFile: string;
}

/** What was foreseen of a run. */
export interface Forecast {
  readonly hits: number;
  readonly renderCpuSeconds: number;
}

/** One run of the service, and what the model had said of it. */
export interface ReplayRun {
  readonly memoryBytes: number;
  readonly requests: number;
  readonly hits: number;
  readonly cpuSeconds: { readonly main: number; readonly workers: number };
  /** With the bytes of the table. */
  readonly forecast: Forecast;
  /** With the bytes that came: what is left is the fault of the model alone. */
  readonly forecastOfRealBytes: Forecast;
}

/** All that a replay has brought to light. */
export interface Replay {
  readonly runs: readonly ReplayRun[];
  /** Renderings that were asked for, and their bytes: by the table and as they came. */
  readonly renderings: number;
  readonly tableBytes: number;
  readonly realBytes: number;
  /** CPU of the main process per hit, in milliseconds. */
  readonly hitCpuMs: number;
}

/** Hits of one small picture, to see what a request costs that is no work. */
const HITS = 3_000;

/** Longer than a replay takes. */
const NEVER_S = 86_400;

/**
 * Sends a short trace to the built service, one request after the other, once for each size of the
 * memory, and compares what `Cache-Status` says with the simulation of the same.
 *
 * @throws Error if a request is not answered with 200
 */
export async function replay(options: ReplayOptions): Promise<Replay> {
  const { seed, requests, memories, logFile } = options;
  const originals = layOutOriginals(generateTrace({ seed, requests, days: 1 }));
  try {
    const workload = createWorkload(originals.trace);
    const realBytes = new Map<number, number>();
    const measured: Omit<ReplayRun, 'forecast' | 'forecastOfRealBytes'>[] = [];
    let hitCpuMs = 0;
    for (const memoryBytes of memories) {
      const run = await runService(originals, memoryBytes, realBytes, logFile);
      measured.push(run);
      hitCpuMs = run.hitCpuMs;
    }
    const real: Workload = {
      ...workload,
      facts: workload.facts.map((facts, index) => ({
        ...facts,
        bytes: realBytes.get(index) ?? facts.bytes,
      })),
    };
    const sum = ({ facts }: Workload): number => facts.reduce((all, { bytes }) => all + bytes, 0);
    return {
      runs: measured.map((run) => ({
        ...run,
        forecast: foresee(workload, run.memoryBytes),
        forecastOfRealBytes: foresee(real, run.memoryBytes),
      })),
      renderings: workload.facts.length,
      tableBytes: sum(workload),
      realBytes: sum(real),
      hitCpuMs,
    };
  } finally {
    originals.remove();
  }
}

function foresee(workload: Workload, memoryBytes: number): Forecast {
  const { options } = workload.trace;
  const setup = {
    ...DEFAULT_SETUP,
    // As many as there are: nothing is scaled.
    requestsPerDay: options.requests / options.days,
    memoryBytes,
    originalsBytes: 0,
    revalidateS: NEVER_S,
  };
  const { counts } = simulate(workload, setup, { fromDay: 0 });
  return { hits: counts.tiers.memory, renderCpuSeconds: counts.renderCpuMs / 1_000 };
}

async function runService(
  { trace, folder, targets }: ReplayOriginals,
  memoryBytes: number,
  realBytes: Map<number, number>,
  logFile: string,
) {
  const environment = {
    STORAGE_DIR: folder,
    CACHE_MEMORY_BYTES: String(memoryBytes),
    CACHE_REVALIDATE_SECONDS: String(NEVER_S),
  };
  const service = await startService(environment, logFile);
  const client = new HttpClient(service.origin);
  const ask = async (path: string): Promise<{ isHit: boolean; bytes: number }> => {
    const { status, headers, body } = await client.ask(get(path));
    if (status !== 200) throw new Error(`${path} is answered with ${status}.`);
    return { isHit: headers['cache-status'] === 'darkroom; hit', bytes: body.length };
  };
  try {
    const before = readCpuSeconds(service.pid);
    let hits = 0;
    for (const rendering of trace.renderings) {
      const { isHit, bytes } = await ask(targets[rendering] ?? '');
      realBytes.set(rendering, bytes);
      if (isHit) hits += 1;
    }
    const after = readCpuSeconds(service.pid);
    const smallest = [...realBytes].reduce((one, other) => (other[1] < one[1] ? other : one));
    await ask(targets[smallest[0]] ?? '');
    const idle = readCpuSeconds(service.pid).main;
    for (let index = 0; index < HITS; index += 1) await ask(targets[smallest[0]] ?? '');
    const hitCpuSeconds = readCpuSeconds(service.pid).main - idle;
    return {
      memoryBytes,
      requests: trace.renderings.length,
      hits,
      cpuSeconds: {
        main: after.main - before.main,
        workers: after.workers - before.workers,
      },
      hitCpuMs: (hitCpuSeconds * 1_000) / HITS,
    };
  } finally {
    client.close();
    await service.stop(5_000);
  }
}
