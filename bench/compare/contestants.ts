import { existsSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePorts } from '../../test/support/processes/free-ports.ts';
import { type Service, startServer, startService } from '../harness/service.ts';
import { type ForeignServer, fillTemplate, knowsAnimations } from './foreign-server.ts';
import type { Rendering } from './originals.ts';

/** A server, as far as a contest deals with it. */
export interface RunningServer {
  readonly origin: string;
  /** `undefined` where it is not ours. */
  readonly pid: number | undefined;
  readonly stop: () => Promise<unknown>;
}

/** A server that renders images from a folder, or has them. */
export interface Contestant {
  readonly name: string;
  /** Whether it renders animations; it does where nothing is said. */
  readonly knowsAnimations?: boolean;
  /** What it lacks on this machine; `undefined` where it can run. */
  readonly missing?: () => string | undefined;
  readonly start: (folder: string) => Promise<RunningServer>;
  /** How it is asked for a rendering. */
  readonly targetOf: (rendering: Rendering) => string;
}

/** Starts one of the servers beside this file. */
export function startOwn(script: string, ...options: readonly string[]): Promise<Service> {
  const command = [process.execPath, `bench/dist/bench/compare/servers/${script}.js`, ...options];
  return startServer({ name: `compare-${script}`, command });
}

/**
 * Clients wait for their responses, as with the others, which refuse nothing: on a busy machine Darkroom would. What
 * it does then is the subject of `bench:overload`.
 */
export const PATIENT = { QUEUE_TIMEOUT_MS: '60000' } as const;

/** Without its caches. */
export const darkroom: Contestant = {
  name: 'Darkroom',
  start: (folder) =>
    startService('compare-darkroom', {
      STORAGE_DIR: folder,
      CACHE_MEMORY_BYTES: '0',
      CACHE_ORIGINALS_BYTES: '0',
      ...PATIENT,
    }),
  targetOf: ({ darkroomPath }) => darkroomPath,
};

/** With its caches, as it comes. */
export const cachingDarkroom: Contestant = {
  ...darkroom,
  start: (folder) => startService('compare-darkroom-caching', { STORAGE_DIR: folder }),
};

/** The ceiling: sharp in the process that serves. */
export const rawSharp: Contestant = {
  name: 'raw sharp',
  start: (folder) => startOwn('raw-sharp-server', folder),
  targetOf: ({ path, widthPx, format, isAnimated, shrinksOnLoad }) =>
    `/${widthPx}/${format}/${isAnimated ? 'animated' : 'still'}/${shrinksOnLoad ? 'shrunk' : 'whole'}/${path}`,
};

/** Its defaults are sharp's, which are quality 80 for JPEG and WebP as with us. */
export const ipx: Contestant = {
  name: 'IPX',
  start: (folder) => startOwn('ipx-server', folder),
  targetOf: ({ path, widthPx, format, isAnimated }) =>
    `/w_${widthPx},f_${format}${isAnimated ? ',animated' : ''}/${path}`,
};

/** Servers of other languages that take part with `--peer`, with quality 80 as with us. */
export const otherPeers: Readonly<Record<string, Contestant>> = {
  /** Python, from PyPI: `pip install thumbor`. */
  thumbor: {
    name: 'thumbor',
    knowsAnimations: false,
    missing: () => missingProgram('thumbor', 'PyPI: pip install thumbor'),
    start: startThumbor,
    targetOf: ({ path, widthPx, format }) =>
      `/unsafe/${widthPx}x0/filters:format(${format})/${path}`,
  },
  /** Rust, from crates.io: `cargo install oximg`. */
  oximg: {
    name: 'oximg',
    knowsAnimations: false,
    missing: () => missingProgram('oximg', 'crates.io: cargo install oximg'),
    start: (folder) =>
      startServer({
        name: 'compare-oximg',
        command: ['oximg'],
        environment: { IMAGES_DIR: folder, QUALITY: '80', OXIMG_WEBP_QUALITY: '80' },
      }),
    targetOf: ({ path, widthPx, format }) => `/resize/${widthPx}/0/${path}@${format}`,
  },
};

function missingProgram(name: string, source: string): string | undefined {
  const isThere = (process.env.PATH ?? '')
    .split(':')
    .some((place) => existsSync(join(place, name)));
  return isThere ? undefined : `needs ${name} (${source})`;
}

async function startThumbor(folder: string): Promise<Service> {
  const [port = 0] = await findFreePorts(1);
  const settings = join(await mkdtemp(join(tmpdir(), 'darkroom-thumbor-')), 'thumbor.conf');
  const lines = [
    "LOADER = 'thumbor.loaders.file_loader'",
    `FILE_LOADER_ROOT_PATH = '${folder}'`,
    'QUALITY = 80',
    'ALLOW_UNSAFE_URL = True',
    "STORAGE = 'thumbor.storages.no_storage'",
  ];
  await writeFile(settings, lines.join('\n'));
  const processes = String(availableParallelism());
  const options = ['-i', '127.0.0.1', '-p', String(port), '-c', settings, '--processes', processes];
  return startServer({
    name: 'compare-thumbor',
    command: ['thumbor', ...options],
    port,
    deathSignal: 'TERM',
  });
}

/** A server that somebody else runs on the same originals. */
export function foreignContestant(foreign: ForeignServer): Contestant {
  const { name, origin, target } = foreign;
  return {
    name,
    knowsAnimations: knowsAnimations(foreign),
    start: async () => ({ origin, pid: undefined, stop: async () => undefined }),
    targetOf: (rendering) => fillTemplate(target, rendering),
  };
}
