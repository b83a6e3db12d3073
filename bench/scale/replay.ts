import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePorts } from '../../test/support/free-ports.ts';
import { get, HttpClient } from '../harness/exchange.ts';
import { readCpuSeconds } from '../harness/process-numbers.ts';
import { startService } from '../harness/service.ts';
import { generateTrace } from '../trace/trace.ts';
import { layOutOriginals, type ReplayOriginals } from './replay-originals.ts';
import { DEFAULT_SETUP, type Setup } from './setup.ts';
import { simulate } from './simulate.ts';
import { createWorkload, type Workload } from './workload.ts';

/** What is chosen for a replay. */
export interface ReplayOptions {
  readonly seed: number;
  readonly requests: number;
  /** Two runs of the service with each: without a store, and before a folder that holds all. */
  readonly memories: readonly number[];
  readonly logFile: string;
}

/** What was foreseen of a run. */
export interface Forecast {
  readonly hits: number;
  readonly storeHits: number;
  /** Small ones and whole ones. */
  readonly originReads: number;
  readonly renderCpuSeconds: number;
}

/** One run of the service, and what the model had said of it. */
export interface ReplayRun {
  readonly memoryBytes: number;
  readonly hasStore: boolean;
  readonly requests: number;
  readonly hits: number;
  readonly storeHits: number;
  /** By the service's own count. */
  readonly originReads: number;
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

const METRICS_TOKEN = 'token-of-the-replay';

/** More than all renderings of a replay take. */
const STORE_BYTES = 2 ** 30;

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
      for (const hasStore of [false, true]) {
        const store = hasStore ? mkdtempSync(join(tmpdir(), 'darkroom-replay-')) : undefined;
        try {
          const run = await runService(originals, { memoryBytes, store, realBytes, logFile });
          measured.push(run);
          hitCpuMs = run.hitCpuMs;
        } finally {
          if (store !== undefined) rmSync(store, { recursive: true });
        }
      }
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
        forecast: foresee(workload, run),
        forecastOfRealBytes: foresee(real, run),
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

function foresee(
  workload: Workload,
  { memoryBytes, hasStore }: Pick<ReplayRun, 'memoryBytes' | 'hasStore'>,
): Forecast {
  const { options } = workload.trace;
  const setup: Setup = {
    ...DEFAULT_SETUP,
    // As many as there are: nothing is scaled.
    requestsPerDay: options.requests / options.days,
    memoryBytes,
    originalsBytes: 0,
    revalidateS: NEVER_S,
    store: hasStore ? { kind: 'filesystem', maxBytes: STORE_BYTES } : { kind: 'none' },
  };
  const { counts } = simulate(workload, setup, { fromDay: 0 });
  const { memory: hits, store: storeHits } = counts.tiers;
  return {
    hits,
    storeHits,
    originReads: counts.originReads + counts.revalidations,
    renderCpuSeconds: counts.renderCpuMs / 1_000,
  };
}

/** How the service is run once, and what is noted of it. */
interface ServiceRun {
  readonly memoryBytes: number;
  /** Folder of its result store. */
  readonly store: string | undefined;
  /** By the renderings' places in the trace. */
  readonly realBytes: Map<number, number>;
  readonly logFile: string;
}

async function runService(
  { trace, folder, targets }: ReplayOriginals,
  { memoryBytes, store, realBytes, logFile }: ServiceRun,
) {
  const [adminPort = 0] = await findFreePorts(1);
  const environment = {
    STORAGE_DIR: folder,
    CACHE_MEMORY_BYTES: String(memoryBytes),
    CACHE_ORIGINALS_BYTES: '0', // as foreseen
    CACHE_REVALIDATE_SECONDS: String(NEVER_S),
    ADMIN_PORT: String(adminPort),
    ADMIN_TOKEN: METRICS_TOKEN,
    ...(store !== undefined && { RESULT_STORE: 'filesystem', RESULT_STORE_DIR: store }),
  };
  const service = await startService(environment, logFile);
  const client = new HttpClient(service.origin);
  const admin = new HttpClient(`http://127.0.0.1:${adminPort}`);
  const ask = async (path: string): Promise<{ outcome: string; bytes: number }> => {
    const { status, headers, body } = await client.ask(get(path));
    if (status !== 200) throw new Error(`${path} is answered with ${status}.`);
    return { outcome: String(headers['cache-status']), bytes: body.length };
  };
  try {
    const readsBefore = await countOriginReads(admin);
    const before = readCpuSeconds(service.pid);
    let hits = 0;
    let storeHits = 0;
    for (const rendering of trace.renderings) {
      const { outcome, bytes } = await ask(targets[rendering] ?? '');
      realBytes.set(rendering, bytes);
      if (outcome === 'darkroom; hit') hits += 1;
      if (outcome.endsWith('; detail=store')) storeHits += 1;
    }
    const after = readCpuSeconds(service.pid);
    const originReads = (await countOriginReads(admin)) - readsBefore;
    const smallest = [...realBytes].reduce((one, other) => (other[1] < one[1] ? other : one));
    await ask(targets[smallest[0]] ?? '');
    const idle = readCpuSeconds(service.pid).main;
    for (let index = 0; index < HITS; index += 1) await ask(targets[smallest[0]] ?? '');
    const hitCpuSeconds = readCpuSeconds(service.pid).main - idle;
    return {
      memoryBytes,
      hasStore: store !== undefined,
      requests: trace.renderings.length,
      hits,
      storeHits,
      originReads,
      cpuSeconds: {
        main: after.main - before.main,
        workers: after.workers - before.workers,
      },
      hitCpuMs: (hitCpuSeconds * 1_000) / HITS,
    };
  } finally {
    client.close();
    admin.close();
    await service.stop(5_000);
  }
}

/** Reads that have found something, since the start of the service. */
async function countOriginReads(admin: HttpClient): Promise<number> {
  const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
  const { body } = await admin.ask(get('/metrics', headers));
  const [, count] =
    /^darkroom_origin_reads_total\{outcome="found"\} (\d+)$/m.exec(String(body)) ?? [];
  if (count === undefined) throw new Error('The metrics have no count of reads.');
  return Number(count);
}
