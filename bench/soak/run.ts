import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { workersOf } from '../../test/support/processes/worker-ids.ts';
import { readProcess } from '../harness/process-numbers.ts';
import { Random } from '../harness/random.ts';
import { sumOf } from '../harness/report.ts';
import { startService, useTemporaryDirectory } from '../harness/service.ts';
import { copyKey, createOriginals, RESERVED_COPY } from './originals.ts';
import { createLoadMix, type LoadMix } from './requests.ts';
import { openStorage, type Place } from './storage.ts';
import { pause, Troubles } from './troubles.ts';
import { Witness } from './visits.ts';

/** Results of a run. */
export type SoakRun = Awaited<ReturnType<typeof runSoak>>;

/** State of the service at one moment. */
export type Sample = NonNullable<ReturnType<typeof takeSample>>;

/** Small caches fill within the first minutes, so that memory is then constant; a stalled body ends within a cycle. */
const SERVICE_SETTINGS = {
  CACHE_MEMORY_BYTES: String(48 * 2 ** 20),
  CACHE_ORIGINALS_BYTES: String(16 * 2 ** 20),
  ORIGIN_TIMEOUT_MS: '10000',
  EXPLORER: 'off',
} as const;

const SAMPLE_EVERY_MS = 5_000;

/** Number of clients, each of which sends one request after another, and their mean pause in between. */
const CLIENTS = 24;
const THINK_MS = 400;

/** Minimum pause between two kills, long enough for a new worker to start; the mean is twice as long. */
const KILL_PAUSE_MS = 5_000;

const BURST_REQUESTS = 200;
const BURST_EVERY_MS = 90_000;
/** A burst lasts until its requests have left the queue, in which they wait up to 5 s. */
const BURST = {
  name: `burst of ${BURST_REQUESTS} requests`,
  excuses: 'renders',
  lingerMs: 6_000,
} as const;

/** Time until idle connections close: those to the originals after 15 s, those of clients after 72 s. */
const QUIET_MS = 80_000;
const STOP_GRACE_MS = 30_000;

/** One request for each path through the service. */
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

/** Runs the service under a mixed load; aborting `over` ends it early. Throws if service or storage do not start. */
export function runSoak(durationMs: number, seed: number, place: Place, over: AbortController) {
  return useTemporaryDirectory(async (directory) => {
    const originals = createOriginals();
    const storage = await openStorage(directory, place, Object.values(originals).flat());
    const settings = { ...SERVICE_SETTINGS, ...storage.settings };
    const service = await startService('soak-service', settings).catch(async (error: unknown) => {
      await storage.close();
      throw error;
    });
    const { pid, origin, logFile, isAlive, stop } = service;
    try {
      const random = new Random(seed);
      const goodBefore = await fetchGood(origin, GOOD_PATHS);
      const troubles = new Troubles();
      const witness = new Witness(origin, troubles);
      const mix = createLoadMix(originals, random, witness.tags);
      const beganMs = Date.now();
      const before = takeSample(pid);
      const samples: Sample[] = [];
      const sampling = setInterval(
        () => samples.push(...[takeSample(pid) ?? []].flat()),
        SAMPLE_EVERY_MS,
      );
      setMaxListeners(0, over.signal);
      const timer = setTimeout(() => over.abort(), durationMs);
      const [killedWorkers] = await Promise.all([
        killWorkers(pid, new Random(seed), over.signal),
        troubles.makeWaves(storage.faults, random, over.signal),
        driveClients(mix, witness, troubles, seed, over.signal),
      ]);
      clearInterval(sampling);
      clearTimeout(timer);
      const loadEndedMs = Date.now();
      // The reserved originals have the bytes of the samples; their renderings are not in any cache.
      const reserved = GOOD_PATHS.map((path) => copyKey(path, RESERVED_COPY));
      const goodAfter = await fetchGood(origin, reserved);
      await sleep(QUIET_MS);
      return {
        ...{ logFile, troubles, killedWorkers, samples },
        /** Since 1970. */
        beganMs,
        /** Less than planned if the load was ended early. */
        loadedMs: loadEndedMs - beganMs,
        visits: witness.visits,
        missingFaults: storage.missing,
        /** Number of renderings stored after the load, when all disks worked again. */
        storedAfterwards: storage.countStoredSince(loadEndedMs),
        temporaryFiles: storage.listTemporary(troubles),
        /** Before and after the load; `undefined` if the service had exited. */
        atRest: { before, after: takeSample(pid) },
        changedImages: GOOD_PATHS.filter(
          (_, index) =>
            goodBefore[index]?.startsWith('status') || goodBefore[index] !== goodAfter[index],
        ),
        isAlive: isAlive(),
        end: await stop(STOP_GRACE_MS),
      };
    } finally {
      if (isAlive()) await stop(0);
      await storage.close();
    }
  });
}

/** Sends requests, steadily and in bursts, until the load ends; waits for the last responses. */
async function driveClients(
  mix: LoadMix,
  witness: Witness,
  troubles: Troubles,
  seed: number,
  over: AbortSignal,
): Promise<void> {
  const visitOn = async (random: Random): Promise<void> => {
    while (await pause(random.exponential(THINK_MS), over)) await witness.visit(mix.next(random));
  };
  const burstOn = async (random: Random): Promise<void> => {
    while (await pause(BURST_EVERY_MS, over)) {
      const shots = Array.from({ length: BURST_REQUESTS }, () => mix.nextOfBurst(random));
      await troubles.make(BURST, () => Promise.all(shots.map((shot) => witness.visit(shot))));
    }
  };
  const loops = Array.from({ length: CLIENTS }, (_, index) =>
    visitOn(new Random(seed + index + 1)),
  );
  await Promise.all([...loops, burstOn(new Random(seed))]);
}

/** Kills rendering and idle workers with SIGKILL until the load ends; returns their number. No request may fail. */
async function killWorkers(pid: number, random: Random, over: AbortSignal): Promise<number> {
  for (let killed = 0; ; ) {
    const earlier = new Set(workersOf(pid));
    const pauseMs = KILL_PAUSE_MS + random.exponential(KILL_PAUSE_MS);
    if (!(await pause(pauseMs, over))) return killed;
    // A worker that is still starting is not killed, because the service logs a failed start as an error.
    const workers = workersOf(pid).filter((worker) => earlier.has(worker));
    try {
      process.kill(random.pick(workers), 'SIGKILL');
      killed += 1;
    } catch {
      // There is no worker, or it has just exited.
    }
  }
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

/** Measures the service and its workers; returns `undefined` if the service has exited. */
function takeSample(pid: number) {
  const main = readProcess(pid);
  if (main === undefined) return undefined;
  const workers = workersOf(pid).flatMap((child) => readProcess(child) ?? []);
  return {
    atMs: Date.now(),
    memory: main.residentBytes,
    workerMemory: sumOf(workers, ({ residentBytes }) => residentBytes),
    descriptors: main.descriptors,
    threads: main.threads,
    workers: workers.length,
  };
}
