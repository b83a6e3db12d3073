import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import sharp from 'sharp';
import { type Drawing, drawFilms, layOut, PHOTOS } from '../harness/drawings.ts';
import type { LoadResponse, LoadResult } from '../harness/load.ts';
import { LoadGenerator } from '../harness/load-generator.ts';
import { watchOthers } from '../harness/process-numbers.ts';
import { fetchOk, startService } from '../harness/service.ts';
import { HEAVY_FILMS } from './originals.ts';
import { served, waitForRest } from './overload-run.ts';

/** What is chosen for a run. */
export interface CostlyOptions {
  /** Length of each phase that is compared. */
  readonly phaseMs: number;
  /** How often phases without and with costly originals alternate. */
  readonly rounds: number;
  readonly workers: number;
}

/** What was measured in one phase. */
export interface CostlyPhase {
  /** Animations as people upload them. */
  readonly healthy: readonly LoadResponse[];
  /** None while the others are alone. */
  readonly costly: readonly LoadResponse[];
  /** What all else that runs on this machine has used, as a share of its cores. */
  readonly othersShare: number;
}

/** All that a run has brought to light. */
export interface CostlyRun {
  readonly options: CostlyOptions;
  /** Healthy animations a second, with nothing else to do. */
  readonly capacityPerSecond: number;
  /** Those that arrived in a second. */
  readonly perSecond: number;
  readonly phases: readonly CostlyPhase[];
}

export const COSTLY_EVERY_MS = 4_000;

/** Edge of a photo, in pixels: rendered without loss, it takes some 15 s of a core, which is all that a render may take. */
const COSTLY_EDGE_PX = 5_000;

/** Until there are two of them before it matters how the others fare. */
const HEAD_START_MS = 2 * COSTLY_EVERY_MS;

/** Healthy ones arrive at this share of the capacity: busy, but far from overload. */
const LOAD_SHARE = 1 / 4;
const CAPACITY_MS = 8_000;
const MAX_PER_SECOND = 10;
const CLIENTS_PER_WORKER = 2;

/**
 * Measures healthy animations that arrive at a steady rate, alone and while an original that takes as long as a render
 * may take comes every four seconds, in turn and on one running service.
 */
export async function runCostly(options: CostlyOptions): Promise<CostlyRun> {
  const { phaseMs, rounds, workers } = options;
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-costly-'));
  const generators = { healthy: new LoadGenerator('equal'), costly: new LoadGenerator('equal') };
  try {
    const films = await drawFilms(HEAVY_FILMS);
    const seconds = (2 * rounds * phaseMs * LOAD_SHARE + CAPACITY_MS) / 1000;
    const healthy = Math.ceil(seconds * MAX_PER_SECOND * workers) + films.length;
    await layOut(folder, films, healthy, (id) => `stickers/${id}`);
    const costly = rounds * countCostly(phaseMs);
    await layOut(folder, [await drawCostly()], costly, (id) => `attachments/1/${id}/photo.jpg`);
    const service = await startService('costly-service', {
      STORAGE_DIR: folder,
      WORKERS: String(workers),
    });
    try {
      const paths = {
        healthy: Array.from({ length: healthy }, (_, id) => `/stickers/${id}.webp?size=160`),
        costly: Array.from(
          { length: costly },
          (_, id) => `/attachments/1/${id}/photo.jpg?format=webp&quality=lossless`,
        ),
      };
      for (const path of paths.healthy.splice(0, films.length)) await fetchOk(service.origin, path);
      return await measure(options, service, generators, paths);
    } finally {
      await service.stop();
    }
  } finally {
    for (const generator of Object.values(generators)) generator.close();
    await rm(folder, { recursive: true });
  }
}

async function drawCostly(): Promise<Drawing> {
  const [widthPx, format] = [COSTLY_EDGE_PX, 'jpeg'] as const;
  const image = sharp(PHOTOS[0]).resize(widthPx, widthPx);
  return { format, widthPx, bytes: await image.toFormat(format).toBuffer() };
}

type Each<Value> = Readonly<Record<'healthy' | 'costly', Value>>;

function countCostly(phaseMs: number): number {
  return Math.ceil((phaseMs + HEAD_START_MS) / COSTLY_EVERY_MS);
}

/** @param paths which are taken from it as they are used */
async function measure(
  options: CostlyOptions,
  { pid, origin }: { readonly pid: number; readonly origin: string },
  generators: Each<LoadGenerator>,
  paths: Each<string[]>,
): Promise<CostlyRun> {
  const { phaseMs, rounds, workers } = options;
  const clients = CLIENTS_PER_WORKER * workers;
  const { responses } = await generators.healthy.run({
    kind: 'closed',
    origin,
    paths: paths.healthy,
    clients,
    durationMs: CAPACITY_MS,
  });
  paths.healthy.splice(0, responses.length);
  const capacityPerSecond = (served(responses).length * 1000) / CAPACITY_MS;
  const perSecond = capacityPerSecond * LOAD_SHARE;

  const runSteady = (
    kind: 'healthy' | 'costly',
    perSecondOfKind: number,
    durationMs: number,
  ): Promise<LoadResult> => {
    const own = paths[kind].splice(0, Math.round((perSecondOfKind * durationMs) / 1000));
    const load = {
      kind: 'steady',
      origin,
      paths: own,
      perSecond: perSecondOfKind,
      durationMs,
    } as const;
    return generators[kind].run(load);
  };
  const phases: CostlyPhase[] = [];
  for (let phase = 0; phase < 2 * rounds; phase += 1) {
    await waitForRest(pid);
    const readOthersShare = watchOthers();
    const hasCostly = phase % 2 === 1;
    const beside = hasCostly
      ? runSteady('costly', 1000 / COSTLY_EVERY_MS, phaseMs + HEAD_START_MS)
      : undefined;
    await sleep(hasCostly ? HEAD_START_MS : 0);
    const healthy = await runSteady('healthy', perSecond, phaseMs);
    phases.push({
      healthy: healthy.responses,
      costly: (await beside)?.responses ?? [],
      othersShare: readOthersShare(),
    });
  }
  return { options, capacityPerSecond, perSecond, phases };
}
