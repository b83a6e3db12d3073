import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Answer } from '../../harness/load.ts';
import { readCpuSeconds } from '../../harness/process-numbers.ts';
import { quantile } from '../../harness/quantile.ts';
import { type Service, startService } from '../../harness/service.ts';
import { startAnswerCache } from '../answer-cache.ts';
import { type Contest, holdContest, type Player } from '../contest.ts';
import { PATIENT, startOwn } from '../contestants.ts';
import type { Turn } from '../measures.ts';
import { missingNginx } from '../nginx.ts';
import { measureServer, readServerCpuSeconds } from '../server-numbers.ts';
import { createTraceRequests, type TraceRequest, type TraceRequests } from '../trace-requests.ts';
import type { Stage, Workload } from '../workload.ts';

/**
 * A small platform. What comes out of it is like the sizing model of large ones (docs/performance.md, "Sizing"): with the cache
 * below, it answers some 85 % of the requests, and two thirds of what is left were rendered before.
 */
const TRACE = { seed: 1, requests: 20_000, days: 9 } as const;

/** The first part fills cache and store, and is not measured. */
const FILLING_SHARE = 2 / 3;

const CLIENTS = 8;
const LATENCY_MS = 20;

/**
 * Shared memory for the keys of nginx's cache, which has room for some 550: when it is full, the answer that was
 * used longest ago goes. A bound in bytes would be looked at every ten seconds only, which is too seldom here.
 */
const CACHE_KEYS = '80k';

/** Each takes half a minute, and CPU seconds vary less than answers a second. */
const MOST_ROUNDS = 2;

const NAME = 'trace';

/** One way to run a server behind the cache. */
interface Setup {
  readonly name: string;
  readonly pathOf: (request: TraceRequest) => string;
  /** @param bucket URL of the bucket, without a slash at its end */
  readonly start: (bucket: URL, scratch: string) => Promise<Service>;
}

const STORING = 'Darkroom with a folder, no memory';

const setups: readonly Setup[] = [
  darkroomSetup('Darkroom', () => ({})),
  darkroomSetup(STORING, (scratch) => ({
    CACHE_MEMORY_BYTES: '0',
    CACHE_ORIGINALS_BYTES: '0',
    RESULT_STORE: 'filesystem',
    RESULT_STORE_DIR: scratch,
  })),
  {
    name: 'IPX',
    pathOf: ({ ipx }) => ipx,
    start: (bucket) => startOwn('ipx-server.js', 'compare-ipx-trace', `${bucket.href}/`),
  },
];

/** What a chat asks for, behind a cache that forgets. */
export function traceWorkload(): Workload {
  const aims = ['Darkroom', STORING].map((of) => ({ of, to: 'IPX', atLeast: 3 }));
  return { name: NAME, aims, hold };
}

async function hold(stage: Stage): Promise<Contest | undefined> {
  const missing = missingNginx();
  if (missing !== undefined) {
    stage.excuse(NAME, 'all', missing);
    return undefined;
  }
  const trace = createTraceRequests(TRACE);
  const bucketOptions = [trace.folder, String(LATENCY_MS)];
  const origin = await startOwn('slow-origin-server.js', 'compare-origin', ...bucketOptions);
  try {
    const players = setups.map(
      (setup): Player => ({
        name: setup.name,
        play: () => replay(stage, setup, trace, new URL('/originals', origin.origin)),
        leave: async () => undefined,
      }),
    );
    const measures = [
      'cpuSeconds',
      'mainCpuSeconds',
      'reached',
      'p50Ms',
      'p99Ms',
      'peakBytes',
      'seconds',
      'answers',
    ] as const;
    const rounds = Math.min(stage.rounds, MOST_ROUNDS);
    const note = describe(trace);
    return await holdContest({ name: NAME, note, measures, rounds, hasPractice: false }, players);
  } finally {
    await origin.stop(5_000);
    trace.remove();
  }
}

function describe({ requests, renderings }: TraceRequests): string {
  const measured = requests.length - countFilling(requests);
  return [
    `The last ${measured} of ${requests.length} requests for ${renderings} renderings (${TRACE.days} days of \`bench/trace\`, seed ${TRACE.seed}; without attachments that are served as they are; originals are the fixtures), by ${CLIENTS} clients as fast as they are answered, through nginx, which keeps as many answers as ${CACHE_KEYS} of keys have room for, and asks once for what many want at once. The bucket answers after ${LATENCY_MS} ms. CPU is the server's alone, without nginx and bucket.`,
    'Darkroom by itself has 256 MiB for results, which is more than a platform as small can fill: it forgets nothing. With a folder and no memory it is as on a large platform, whose renderings are in a store, and whose memory is small beside what is asked for.',
  ].join(' ');
}

function countFilling(requests: readonly TraceRequest[]): number {
  return Math.floor(requests.length * FILLING_SHARE);
}

async function replay(
  { generator }: Stage,
  { name, pathOf, start }: Setup,
  { requests }: TraceRequests,
  bucket: URL,
): Promise<Turn> {
  const scratch = await mkdtemp(join(tmpdir(), 'darkroom-compare-trace-'));
  const stops: (() => Promise<unknown>)[] = [() => rm(scratch, { recursive: true })];
  try {
    const server = await start(bucket, scratch);
    stops.unshift(() => server.stop(5_000));
    const cache = await startAnswerCache(server.origin, CACHE_KEYS);
    stops.unshift(() => cache.stop(5_000));
    const paths = requests.map(pathOf);
    const ask = async (part: readonly string[]): Promise<readonly Answer[]> => {
      const load = { kind: 'list', origin: cache.origin, clients: CLIENTS, paths: part } as const;
      const { answers } = await generator.run(load);
      const wrong = answers.find(({ status }) => status !== 200);
      if (wrong !== undefined) throw new Error(`${name} answers ${wrong.status} in the trace.`);
      return answers;
    };
    const filling = countFilling(requests);
    await ask(paths.slice(0, filling));
    const cpuBefore = readServerCpuSeconds(server);
    const mainBefore = readCpuSeconds(server.pid).main;
    const beganMs = performance.now();
    const answers = await ask(paths.slice(filling));
    const seconds = (performance.now() - beganMs) / 1000;
    const used = measureServer(server, cpuBefore);
    const latenciesMs = answers.map(({ totalMs }) => totalMs);
    return {
      cpuSeconds: used?.cpuSeconds ?? 0,
      mainCpuSeconds: readCpuSeconds(server.pid).main - mainBefore,
      reached: answers.filter(({ isHit }) => !isHit).length,
      p50Ms: quantile(latenciesMs, 0.5) ?? 0,
      p99Ms: quantile(latenciesMs, 0.99) ?? 0,
      peakBytes: used?.peakBytes ?? 0,
      seconds,
      answers: answers.length,
    };
  } finally {
    for (const stop of stops) await stop();
  }
}

function darkroomSetup(
  name: string,
  settings: (scratch: string) => Readonly<Record<string, string>>,
): Setup {
  return {
    name,
    pathOf: ({ darkroom }) => darkroom,
    start: (bucket, scratch) =>
      startService(
        {
          STORAGE: 's3',
          S3_BUCKET: bucket.pathname.slice(1),
          S3_ENDPOINT: bucket.origin,
          AWS_ACCESS_KEY_ID: 'anybody',
          AWS_SECRET_ACCESS_KEY: 'anybody',
          AWS_EC2_METADATA_DISABLED: 'true',
          ...PATIENT,
          ...settings(scratch),
        },
        'bench-report/compare-darkroom-trace.log',
      ),
  };
}
