import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { workersOf } from '../../test/support/processes/worker-ids.ts';
import { epochMs } from '../harness/load.ts';
import { readProcess } from '../harness/process-numbers.ts';
import { Random } from '../harness/random.ts';
import { sumOf } from '../harness/report.ts';
import { type Service, startService } from '../harness/service.ts';
import { type Pressure, runClients } from './clients.ts';
import { type FaultyDisks, mountFaultyDisks } from './faults/faulty-disk.ts';
import { type FaultyOrigin, startFaultyBucket } from './faults/faulty-origin.ts';
import { killWorkers } from './faults/killed-workers.ts';
import { strike } from './faults/waves.ts';
import { fetchGoodImages } from './good-images.ts';
import { createLoadMix } from './load-mix.ts';
import { listOriginals } from './originals.ts';
import { Witness } from './visit.ts';

export interface SoakOptions {
  readonly durationMs: number;
  readonly seed: number;
  readonly pressure: Pressure;
  /** Where originals are: in a bucket, or in a folder on a disk that fails. */
  readonly originals: 'bucket' | 'disk';
}

/** The service at one moment. */
export type Sample = NonNullable<ReturnType<typeof takeSample>>;

/** All that a run has brought to light. */
export type SoakRun = Awaited<ReturnType<typeof soak>>;

/**
 * Small enough that it is full within the first minutes, so that memory can be flat afterwards; and a
 * stalled body ends within a wave's cycle.
 */
const SERVICE_SETTINGS = {
  CACHE_MEMORY_BYTES: String(48 * 2 ** 20),
  CACHE_ORIGINALS_BYTES: String(16 * 2 ** 20),
  ORIGIN_TIMEOUT_MS: '10000',
  // It is on by itself where originals are in a folder.
  EXPLORER: 'off',
} as const;

const SAMPLES_PER_RUN = 360;
const SHORTEST_SAMPLE_DISTANCE_MS = 1_000;

/** Until idle connections are closed: those to the origin after 15 s, those of clients after 72 s. */
const QUIET_MS = 80_000;

const STOP_GRACE_MS = 30_000;

/**
 * Runs the service under a mixed load for a time.
 *
 * @param over is aborted at the end of the load; before that, what was measured until then is returned
 * @throws Error if the service or its origin do not start
 */
export async function runSoak(options: SoakOptions, over: AbortController): Promise<SoakRun> {
  const disks = await mountFaultyDisks();
  let origin: FaultyOrigin | undefined;
  let service: Service | undefined;
  try {
    origin = options.originals === 'disk' ? disks.takeOriginals() : await startFaultyBucket();
    const settings = { ...SERVICE_SETTINGS, ...origin.settings, ...disks.settings };
    service = await startService('soak-service', settings);
    return await soak(options, service, origin, disks, over);
  } finally {
    if (service?.ending() === undefined) await service?.stop(0);
    await origin?.close();
    await disks.close();
  }
}

async function soak(
  options: SoakOptions,
  service: Service,
  origin: FaultyOrigin,
  disks: FaultyDisks,
  over: AbortController,
) {
  const { durationMs, seed, pressure } = options;
  const { pid, origin: address, logFile } = service;
  const random = new Random(seed);
  const goodBefore = await fetchGoodImages(address, 'samples');
  const witness = new Witness();
  const mix = createLoadMix(listOriginals(), random, witness.tags);

  const beganMs = epochMs();
  const before = takeSample(pid);
  const samples: Sample[] = [];
  const everyMs = Math.max(SHORTEST_SAMPLE_DISTANCE_MS, durationMs / SAMPLES_PER_RUN);
  const sampling = setInterval(() => {
    const sample = takeSample(pid);
    if (sample !== undefined) samples.push(sample);
  }, everyMs);
  // Each client listens to it while it thinks.
  setMaxListeners(0, over.signal);
  const timer = setTimeout(() => over.abort(), durationMs);
  const [waves, killedWorkers, { visits, bursts, loadedMs }] = await Promise.all([
    strike([...origin.kinds, ...disks.kinds], random, over.signal),
    killWorkers(pid, new Random(seed), over.signal),
    runClients(address, mix, witness, pressure, seed, over.signal).then((all) => ({
      ...all,
      loadedMs: epochMs() - beganMs,
    })),
  ]);
  clearInterval(sampling);
  clearTimeout(timer);

  const loadEndedMs = Date.now();
  const goodAfter = await fetchGoodImages(address, 'copies');
  await sleep(QUIET_MS);
  const after = takeSample(pid);
  const storedAfterwards = disks.countStoredSince(loadEndedMs);
  const temporaryFiles = disks.listTemporary();
  const earlyEnding = service.ending();
  return {
    options,
    logFile,
    /** When the load began, since 1970. */
    beganMs,
    /** How long the load went on: less than planned, if it was cut short. */
    loadedMs,
    visits,
    waves,
    bursts,
    killedWorkers,
    /** What could not go wrong on this machine, and why. */
    missing: disks.missing,
    /** Renderings that were stored after the load, when all disks were well again. */
    storedAfterwards,
    temporaryFiles,
    samples,
    /** At rest, before and after the load; `undefined` if the service was gone. */
    atRest: { before, after },
    /** At the start, and rendered anew at the end. */
    goodImages: { before: goodBefore, after: goodAfter },
    /** How the service ended, if it did before it was asked to. */
    earlyEnding,
    ending: earlyEnding ?? (await service.stop(STOP_GRACE_MS)),
  };
}

/** Looks at the service and its workers now; `undefined` if it has ended. */
function takeSample(pid: number) {
  const main = readProcess(pid);
  if (main === undefined) return undefined;
  const workers = workersOf(pid).flatMap((child) => readProcess(child) ?? []);
  return {
    /** Since 1970. */
    atMs: epochMs(),
    main,
    workers: {
      count: workers.length,
      residentBytes: sumOf(workers, ({ residentBytes }) => residentBytes),
    },
  };
}
