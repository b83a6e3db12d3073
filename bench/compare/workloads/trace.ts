import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Service, startService } from '../../harness/service.ts';
import { type Contest, holdContest, type Player, type Stage, type Workload } from '../contest.ts';
import { PATIENT, startOwn } from '../contestants.ts';
import type { Turn } from '../measures.ts';
import { missingNginx, startCachingNginx } from '../nginx.ts';
import { createTraceRequests, type TraceRequest, type TraceRequests } from '../trace-requests.ts';
import { playLoad, watchServer } from '../turns.ts';

/**
 * A small platform. What comes out of it is like the sizing model of large ones (docs/performance.md, "Sizing"): with the cache
 * below, it serves some 85 % of the requests, and two thirds of what is left were rendered before.
 */
const TRACE = { seed: 1, requests: 20_000, days: 9 } as const;

/** The first part fills cache and store, and is not measured. */
const FILLING_SHARE = 2 / 3;

const CLIENTS = 8;
const LATENCY_MS = 20;

/**
 * Shared memory for the keys of nginx's cache, which has room for some 550: when it is full, the response that was
 * used longest ago goes. A bound in bytes would be looked at every ten seconds only, which is too seldom here.
 */
const CACHE_KEYS = '80k';

/** Each takes half a minute, and CPU seconds vary less than responses a second. */
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
    start: (bucket) => startOwn('ipx-server', `${bucket.href}/`),
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
    stage.noteAbsence(NAME, 'all', missing);
    return undefined;
  }
  const trace = createTraceRequests(TRACE);
  const origin = await startOwn('bucket-server', trace.folder, String(LATENCY_MS));
  try {
    const players = setups.map(
      (setup): Player => ({
        name: setup.name,
        play: () => replay(stage, setup, trace, new URL('/originals', origin.origin)),
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
      'responses',
    ] as const;
    const rounds = Math.min(stage.rounds, MOST_ROUNDS);
    const note = describe(trace);
    return await holdContest({ name: NAME, note, measures, rounds, hasPractice: false }, players);
  } finally {
    await origin.stop();
    trace.remove();
  }
}

function describe({ requests, renderings }: TraceRequests): string {
  const measured = requests.length - countFilling(requests);
  return [
    `The last ${measured} of ${requests.length} requests for ${renderings} renderings (${TRACE.days} days of \`bench/trace\`, seed ${TRACE.seed}; without attachments that are served as they are; originals are the fixtures), by ${CLIENTS} clients as fast as they are served, through nginx, which keeps as many responses as ${CACHE_KEYS} of keys have room for, and asks once for what many want at once. The bucket responds after ${LATENCY_MS} ms. CPU is the server's alone, without nginx and bucket.`,
    'Darkroom by itself has 256 MiB for results, which is more than a platform as small can fill: it forgets nothing. With a folder and no memory it is as on a large platform, whose renderings are in a store, and whose memory is small beside what is asked for.',
  ].join(' ');
}

function countFilling(requests: readonly TraceRequest[]): number {
  return Math.floor(requests.length * FILLING_SHARE);
}

async function replay(
  stage: Stage,
  { name, pathOf, start }: Setup,
  { requests }: TraceRequests,
  bucket: URL,
): Promise<Turn> {
  const scratch = await mkdtemp(join(tmpdir(), 'darkroom-compare-trace-'));
  const stops: (() => Promise<unknown>)[] = [() => rm(scratch, { recursive: true })];
  try {
    const server = await start(bucket, scratch);
    stops.unshift(() => server.stop());
    const cache = await startCachingNginx(server.origin, CACHE_KEYS);
    stops.unshift(() => cache.stop());
    const paths = requests.map(pathOf);
    const send = (part: readonly string[]) =>
      playLoad(stage, name, cache, { kind: 'closed', clients: CLIENTS, paths: part });
    const filling = countFilling(requests);
    await send(paths.slice(0, filling));
    const readUsage = watchServer(server);
    const { turn, responses } = await send(paths.slice(filling));
    const reached = responses.filter(({ isHit }) => !isHit).length;
    // Times are the cache's, all else is the server's.
    return { ...turn, ...readUsage(), reached };
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
      startService('compare-darkroom-trace', {
        STORAGE: 's3',
        S3_BUCKET: bucket.pathname.slice(1),
        S3_ENDPOINT: bucket.origin,
        AWS_ACCESS_KEY_ID: 'anybody',
        AWS_SECRET_ACCESS_KEY: 'anybody',
        AWS_EC2_METADATA_DISABLED: 'true',
        ...PATIENT,
        ...settings(scratch),
      }),
  };
}
