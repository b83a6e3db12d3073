import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { measureDistance, renderReference } from '../harness/likeness.ts';
import type { Rendering } from '../harness/originals.ts';
import { meanOf } from '../harness/report.ts';
import { fetchOk, type Service, startOwn, startServer, startService } from '../harness/service.ts';
import type { Contestant, Stage, Turn } from './contest.ts';

/** Server that renders images from a directory. */
export interface Renderer {
  readonly name: string;
  readonly start: (directory: string) => Promise<Service>;
  readonly targetOf: (rendering: Rendering) => string;
  readonly isForStillsOnly?: boolean;
}

/**
 * Settings without caches, and with long timeouts, because other servers reject no requests. `bench:overload` measures
 * which requests Darkroom rejects on a busy machine.
 */
export const COLD = {
  CACHE_MEMORY_BYTES: '0',
  CACHE_ORIGINALS_BYTES: '0',
  QUEUE_TIMEOUT_MS: '60000',
} as const;

export const darkroom: Renderer = {
  name: 'Darkroom',
  start: (directory) => startService('compare-darkroom', { STORAGE_DIR: directory, ...COLD }),
  targetOf: ({ darkroomPath }) => darkroomPath,
};

/** Upper bound: sharp in the server's own process. */
const rawSharp: Renderer = {
  name: 'raw sharp',
  start: (directory) => startOwn('raw-sharp', directory),
  targetOf: ({ path, widthPx, format, isAnimated }) =>
    `/${widthPx}/${format}/${isAnimated ? 'animated' : 'still'}/${path}`,
};

/** IPX with its defaults, which are sharp's: quality 80 for JPEG and WebP, as in Darkroom. */
const ipx: Renderer = {
  name: 'IPX',
  start: (directory) => startOwn('ipx', directory),
  targetOf: ({ path, widthPx, format, isAnimated }) =>
    `/w_${widthPx},f_${format}${isAnimated ? ',animated' : ''}/${path}`,
};

export const renderers: readonly Renderer[] = [darkroom, rawSharp, ipx];

/** Parses `--peer`, a server for stills: name, path of a rendering, and command. Throws if a part is missing. */
export function parsePeer(option: string): Renderer {
  const [name = '', target = '', ...command] = option.trim().split(/\s+/);
  if (command.length === 0) {
    throw new Error(
      '--peer: expected "NAME /…{width}…{format}…{path} COMMAND…{port}…{directory}…"',
    );
  }
  return {
    name,
    isForStillsOnly: true,
    start: (directory) =>
      startServer(
        `compare-${name}`,
        command.map((word) => word.replace('{directory}', directory)),
      ),
    targetOf: ({ widthPx, format, path }) =>
      target
        .replace('{width}', String(widthPx))
        .replace('{format}', format)
        .replace('{path}', path),
  };
}

/** Creates a contestant that renders; each round requests other renderings. */
export function createRenderer(
  { name, start, targetOf }: Renderer,
  renderings: readonly Rendering[],
  { originals: { directory }, isLikenessWanted }: Stage,
): Contestant {
  // One rendering of each format, from the end of the list, which no round reaches.
  const samples = new Map(renderings.map((rendering) => [rendering.format, rendering])).values();
  const isMeasured = isLikenessWanted && !renderings.some(({ isAnimated }) => isAnimated);
  return {
    name,
    start: () => start(directory),
    paths: renderings.map(targetOf),
    check: async (origin) => {
      for (const sample of samples) await checkImage(origin, targetOf(sample), sample);
    },
    inspect: isMeasured
      ? (origin) => measureLikeness(directory, renderings.slice(-8), origin, targetOf)
      : undefined,
  };
}

/** Creates a contestant that sends stored responses; its check caches all paths. */
export function createSender(
  name: string,
  start: Contestant['start'],
  paths: readonly string[],
): Contestant {
  const check = async (origin: string): Promise<void> => {
    for (const path of paths) await fetchOk(origin, path);
  };
  return { name, start, paths, check };
}

/** Rejects a server that sends the original or another size, because it would do less work. */
async function checkImage(
  origin: string,
  target: string,
  { widthPx, format, isAnimated }: Rendering,
): Promise<void> {
  const { body } = await fetchOk(origin, target);
  const describe = (isAnimatedImage: boolean, name: string, width: number): string =>
    `${isAnimatedImage ? 'an animated' : 'a still'} ${name} of ${width} px`;
  const wanted = describe(isAnimated, format, widthPx);
  const metadata = await sharp(body).metadata();
  const sent = describe((metadata.pages ?? 1) > 1, metadata.format, metadata.width);
  if (sent !== wanted) throw new Error(`sends ${sent} instead of ${wanted}`);
}

/** Returns the mean size of a server's pictures, and their mean distance from an exact reduction. */
async function measureLikeness(
  directory: string,
  renderings: readonly Rendering[],
  origin: string,
  targetOf: Renderer['targetOf'],
): Promise<Turn> {
  const all: Turn[] = [];
  for (const rendering of renderings) {
    const { body } = await fetchOk(origin, targetOf(rendering));
    const { width, height } = await sharp(body).metadata();
    const source = readFileSync(join(directory, rendering.path));
    const reference = await renderReference(source, width, height);
    all.push({ ...(await measureDistance(reference, body)), bytesEach: body.length });
  }
  return meanOf(all);
}
