import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { workersOf } from '../../test/support/processes/worker-ids.ts';
import { epochMs } from '../harness/load.ts';
import { type ProcessNumbers, readProcess } from '../harness/process-numbers.ts';
import { Random } from '../harness/random.ts';
import { sumOf } from '../harness/report.ts';
import { type Ending, type Service, startService } from '../harness/service.ts';
import { type Burst, type Pressure, runClients } from './clients.ts';
import { type FaultyDisks, mountFaultyDisks } from './faults/faulty-disk.ts';
import { type FaultyOrigin, startFaultyBucket } from './faults/faulty-origin.ts';
import { type KilledWorkers, killWorkers } from './faults/killed-workers.ts';
import { strike, type Wave } from './faults/waves.ts';
import { fetchGoodImages, type GoodImages } from './good-images.ts';
import { createLoadMix } from './load-mix.ts';
import { listOriginals } from './originals.ts';
import { type Visit, Witness } from './visit.ts';

/** What is chosen for a run. */
export interface SoakOptions {
  readonly durationMs: number;
  readonly seed: number;
  readonly pressure: Pressure;
  /** Where originals are: in a bucket, or in a folder on a disk that fails. */
  readonly originals: 'bucket' | 'disk';
}

/** The service at one moment. */
export interface Sample {
  /** After the load began. */
  readonly atMs: number;
  readonly main: ProcessNumbers;
  readonly workers: { readonly count: number; readonly residentBytes: number };
}

/** All that a run has brought to light. */
export interface SoakRun {
  readonly options: SoakOptions;
  readonly logFile: string;
  /** Since 1970; all other times are after it. */
  readonly beganMs: number;
  /** How long the load went on: less than planned, if it was cut short. */
  readonly loadedMs: number;
  readonly visits: readonly Visit[];
  readonly waves: readonly Wave[];
  readonly bursts: readonly Burst[];
  readonly killedWorkers: KilledWorkers;
  /** What could not go wrong on this machine, and why. */
  readonly missing: readonly string[];
  /** Renderings that were stored after the load, when all disks were well again. */
  readonly storedAfterwards: number;
  /** Files that were left behind. */
  readonly temporaryFiles: readonly string[];
  readonly samples: readonly Sample[];
  /** At rest, before and after the load; `undefined` if the service was gone. */
  readonly atRest: { readonly before: Sample | undefined; readonly after: Sample | undefined };
  /** At the start, and rendered anew at the end. */
  readonly goodImages: { readonly before: GoodImages; readonly after: GoodImages };
  /** How the service ended, if it did before it was asked to. */
  readonly earlyEnding: Ending | undefined;
  readonly ending: Ending;
}

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
 * @param cut ends the load early; what was measured until then is returned
 * @throws Error if the service or its origin do not start
 */
export async function runSoak(options: SoakOptions, cut: AbortSignal): Promise<SoakRun> {
  const disks = await mountFaultyDisks();
  let origin: FaultyOrigin | undefined;
  let service: Service | undefined;
  try {
    origin = options.originals === 'disk' ? disks.takeOriginals() : await startFaultyBucket();
    const settings = { ...SERVICE_SETTINGS, ...origin.settings, ...disks.settings };
    service = await startService('soak-service', settings);
    return await soak(options, service, { origin, disks }, cut);
  } finally {
    if (service?.ending() === undefined) await service?.stop(0);
    await origin?.close();
    await disks.close();
  }
}

async function soak(
  options: SoakOptions,
  service: Service,
  { origin, disks }: { readonly origin: FaultyOrigin; readonly disks: FaultyDisks },
  cut: AbortSignal,
): Promise<SoakRun> {
  const { durationMs, seed, pressure } = options;
  const random = new Random(seed);
  const goodBefore = await fetchGoodImages(service.origin, 'samples');
  const witness = new Witness();
  const mix = createLoadMix(listOriginals(), random, witness.tags);

  const beganMs = epochMs();
  const before = takeSample(service.pid, beganMs);
  const samples: Sample[] = [];
  const everyMs = Math.max(SHORTEST_SAMPLE_DISTANCE_MS, durationMs / SAMPLES_PER_RUN);
  const sampling = setInterval(() => {
    const sample = takeSample(service.pid, beganMs);
    if (sample !== undefined) samples.push(sample);
  }, everyMs);
  const over = endAfter(durationMs, cut);
  const striking = strike([...origin.kinds, ...disks.kinds], random, beganMs, over);
  const killing = killWorkers(service.pid, new Random(seed), over);
  const { origin: address } = service;
  const load = { origin: address, mix, witness, pressure, seed, beganMs };
  const { visits, bursts } = await runClients(load, over);
  const loadedMs = epochMs() - beganMs;
  const waves = await striking;
  const killedWorkers = await killing;
  clearInterval(sampling);

  const loadEndedMs = Date.now();
  const goodAfter = await fetchGoodImages(service.origin, 'copies');
  await sleep(QUIET_MS);
  const after = takeSample(service.pid, beganMs);
  const storedAfterwards = disks.countStoredSince(loadEndedMs);
  const temporaryFiles = disks.listTemporary();
  const earlyEnding = service.ending();
  return {
    options,
    logFile: service.logFile,
    beganMs,
    loadedMs,
    visits,
    waves,
    bursts,
    killedWorkers,
    missing: disks.missing,
    storedAfterwards,
    temporaryFiles,
    samples,
    atRest: { before, after },
    goodImages: { before: goodBefore, after: goodAfter },
    earlyEnding,
    ending: earlyEnding ?? (await service.stop(STOP_GRACE_MS)),
  };
}

/** Looks at the service and its workers now; `undefined` if it has ended. */
function takeSample(pid: number, beganMs: number): Sample | undefined {
  const main = readProcess(pid);
  if (main === undefined) return undefined;
  const workers = workersOf(pid).flatMap((child) => readProcess(child) ?? []);
  return {
    atMs: epochMs() - beganMs,
    main,
    workers: {
      count: workers.length,
      residentBytes: sumOf(workers, ({ residentBytes }) => residentBytes),
    },
  };
}

/** Aborts after a time, or when `cut` does. Not `AbortSignal.any`: Node 20 may collect what it waits for. */
function endAfter(ms: number, cut: AbortSignal): AbortSignal {
  const end = new AbortController();
  // Each client listens to it while it thinks.
  setMaxListeners(0, end.signal);
  const timer = setTimeout(() => end.abort(), ms);
  cut.addEventListener('abort', () => {
    clearTimeout(timer);
    end.abort();
  });
  return end.signal;
}
