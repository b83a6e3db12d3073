import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { workersOf } from '../../test/support/processes/worker-ids.ts';
import { epochMs } from '../harness/load.ts';
import { readProcess } from '../harness/process-numbers.ts';
import { Random } from '../harness/random.ts';
import { sumOf } from '../harness/report.ts';
import { startService } from '../harness/service.ts';
import { openStorage, type Place } from './faults.ts';
import { copyKey, createOriginals, RESERVED_COPY } from './originals.ts';
import { createLoadMix, type LoadMix } from './requests.ts';
import { killWorkers, make, makeWaves, pause, type Trouble } from './trouble.ts';
import { Witness } from './visits.ts';

interface SoakOptions {
  readonly durationMs: number;
  readonly seed: number;
  /** Clients that each send one request after another. */
  readonly clients: number;
  readonly place: Place;
}

/** All that a run has found. */
export type SoakRun = Awaited<ReturnType<typeof runSoak>>;

/** The service at one moment. */
export type Sample = NonNullable<ReturnType<typeof takeSample>>;

/** Memory is full within the first minutes, so that it can be flat afterwards; a stalled body ends within a cycle. */
const SERVICE_SETTINGS = {
  CACHE_MEMORY_BYTES: String(48 * 2 ** 20),
  CACHE_ORIGINALS_BYTES: String(16 * 2 ** 20),
  ORIGIN_TIMEOUT_MS: '10000',
  EXPLORER: 'off',
} as const;

const SAMPLES_PER_RUN = 360;
const SHORTEST_SAMPLE_DISTANCE_MS = 1_000;

/** Mean pause of a client between a response and its next request. */
const THINK_MS = 400;

const BURST_REQUESTS = 200;
const BURST_EVERY_MS = 90_000;
/** Time for which a burst is felt: its requests wait in the queue for up to 5 s. */
const BURST_LINGER_MS = 6_000;

/** Time until idle connections close: those to the originals after 15 s, those of clients after 72 s. */
const QUIET_MS = 80_000;
const STOP_GRACE_MS = 30_000;

/** One path for each way through the service. */
const GOOD_PATHS = [
  '/avatars/1/ab12.webp?size=256',
  '/icons/1/ab12.png?size=64',
  '/splashes/1/ab12.jpg?size=480&quality=low',
  '/avatars/8/op56.webp?quality=lossless',
  '/avatars/2/a_cd34.gif?size=64',
  '/stickers/1474444444444444445.webp',
  '/emojis/1473333333333333334.webp?size=48&animated=true',
  '/attachments/1/1/country-lane.jpg?width=200&height=200&format=webp',
  '/attachments/1/14/romeo.txt',
];

/**
 * Runs the service under a mixed load.
 *
 * @param over ends the load when it is aborted
 * @throws Error if the service or its storage do not start
 */
export async function runSoak(options: SoakOptions, over: AbortController) {
  const { durationMs, seed, place } = options;
  const originals = createOriginals();
  const storage = await openStorage(place, Object.values(originals).flat());
  try {
    const settings = { ...SERVICE_SETTINGS, ...storage.settings };
    const { pid, origin, logFile, ending, stop } = await startService('soak-service', settings);
    try {
      const random = new Random(seed);
      const goodBefore = await fetchGood(origin, GOOD_PATHS);
      const troubles: Trouble[] = [];
      const witness = new Witness(origin, troubles);
      const mix = createLoadMix(originals, random, witness.tags);
      const beganMs = epochMs();
      const before = takeSample(pid);
      const samples: Sample[] = [];
      const everyMs = Math.max(SHORTEST_SAMPLE_DISTANCE_MS, durationMs / SAMPLES_PER_RUN);
      const sampling = setInterval(() => samples.push(...[takeSample(pid) ?? []].flat()), everyMs);
      setMaxListeners(0, over.signal);
      const timer = setTimeout(() => over.abort(), durationMs);
      const [killedWorkers] = await Promise.all([
        killWorkers(pid, new Random(seed), over.signal),
        makeWaves(troubles, storage.faults, random, over.signal),
        driveClients(mix, witness, troubles, options, over.signal),
      ]);
      clearInterval(sampling);
      clearTimeout(timer);
      const loadedMs = epochMs() - beganMs;
      const loadEndedMs = Date.now();
      // The reserved originals have the bytes of the samples; their renderings are not in any cache.
      const reserved = GOOD_PATHS.map((path) => copyKey(path, RESERVED_COPY));
      const goodAfter = await fetchGood(origin, reserved);
      await sleep(QUIET_MS);
      const isAlive = ending() === undefined;
      return {
        ...{ options, logFile, troubles, killedWorkers, samples },
        /** Since 1970. */
        beganMs,
        /** Less than planned if somebody ended the load early. */
        loadedMs,
        visits: witness.visits,
        missingFaults: storage.missing,
        /** Renderings stored after the load, when all disks were well again. */
        storedAfterwards: storage.countStoredSince(loadEndedMs),
        temporaryFiles: storage.listTemporary(),
        /** Before and after the load; `undefined` if the service was gone. */
        atRest: { before, after: takeSample(pid) },
        changedImages: GOOD_PATHS.filter(
          (_, index) =>
            goodBefore[index]?.startsWith('status') || goodBefore[index] !== goodAfter[index],
        ),
        /** Whether the service ran until it was stopped. */
        isAlive,
        end: await stop(STOP_GRACE_MS),
      };
    } finally {
      if (ending() === undefined) await stop(0);
    }
  } finally {
    await storage.close();
  }
}

/** Sends requests until the load ends, steadily and in bursts, and waits for the last responses. */
async function driveClients(
  mix: LoadMix,
  witness: Witness,
  troubles: Trouble[],
  { clients, seed }: SoakOptions,
  over: AbortSignal,
): Promise<void> {
  const visitOn = async (random: Random): Promise<void> => {
    while (await pause(random.exponential(THINK_MS), over)) await witness.visit(mix.next(random));
  };
  const burstOn = async (random: Random): Promise<void> => {
    const name = `burst of ${BURST_REQUESTS} requests`;
    const none = { begin: () => undefined, end: () => undefined };
    const burst = { name, excuses: 'renders', lingerMs: BURST_LINGER_MS, ...none } as const;
    while (await pause(BURST_EVERY_MS, over)) {
      const shots = Array.from({ length: BURST_REQUESTS }, () => mix.nextOfBurst(random));
      await make(troubles, burst, () => Promise.all(shots.map((shot) => witness.visit(shot))));
    }
  };
  const loops = Array.from({ length: clients }, (_, index) =>
    visitOn(new Random(seed + index + 1)),
  );
  await Promise.all([...loops, burstOn(new Random(seed))]);
}

/** Fetches paths; returns the digest of each body, or the status of a failure. */
function fetchGood(origin: string, paths: readonly string[]): Promise<string[]> {
  return Promise.all(
    paths.map(async (path) => {
      const response = await fetch(origin + path);
      const body = Buffer.from(await response.arrayBuffer());
      const digest = createHash('sha256').update(body).digest('hex');
      return response.ok ? digest : `status ${response.status}`;
    }),
  );
}

/** Reads the numbers of the service and its workers; `undefined` if it has ended. */
function takeSample(pid: number) {
  const main = readProcess(pid);
  if (main === undefined) return undefined;
  const workers = workersOf(pid).flatMap((child) => readProcess(child) ?? []);
  return {
    /** Since 1970. */
    atMs: epochMs(),
    residentBytes: main.residentBytes,
    descriptors: main.descriptors,
    threads: main.threads,
    workers: workers.length,
    workerBytes: sumOf(workers, ({ residentBytes }) => residentBytes),
  };
}
