import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { REPORT_FOLDER } from '../harness/report.ts';
import { type Service, startServer, startService } from '../harness/service.ts';
import type { Rendering } from './originals.ts';

/** A server, as far as a contest deals with it. */
export interface RunningServer {
  readonly origin: string;
  /** `undefined` where it is not ours. */
  readonly pid: number | undefined;
  readonly stop: () => Promise<unknown>;
}

/** A server that can be started. */
export interface Starter {
  readonly name: string;
  /** @param folder of the originals */
  readonly start: (folder: string) => Promise<RunningServer>;
  /** How many turns it practises before the first that counts: one where nothing is said. */
  readonly practiceTurns?: number;
}

/** A server that renders images from a folder, or has them. */
export interface Contestant extends Starter {
  /** Whether it renders animations; it does where nothing is said. */
  readonly knowsAnimations?: boolean;
  /** How it is asked for a rendering. */
  readonly targetOf: (rendering: Rendering) => string;
}

/** Starts one of `servers/own-servers.ts`. */
export function startOwn(name: string, ...options: readonly string[]): Promise<Service> {
  const script = 'bench/dist/bench/compare/servers/own-servers.js';
  const command = () => [process.execPath, script, name, ...options];
  return startServer({ name: `compare-${name}`, command });
}

/**
 * Nothing is kept. Clients wait for their responses, as with the others, which refuse nothing: on a busy machine
 * Darkroom would. What it does then is the subject of `bench:overload`.
 */
export const COLD = {
  CACHE_MEMORY_BYTES: '0',
  CACHE_ORIGINALS_BYTES: '0',
  QUEUE_TIMEOUT_MS: '60000',
} as const;

/** Without its caches. */
export const darkroom: Contestant = {
  name: 'Darkroom',
  // A miss costs its main process half as much once V8 has compiled what it takes; services run for weeks.
  practiceTurns: 10,
  start: (folder) => startService('compare-darkroom', { STORAGE_DIR: folder, ...COLD }),
  targetOf: ({ darkroomPath }) => darkroomPath,
};

/** The ceiling: sharp in the process that serves. */
export const rawSharp: Contestant = {
  name: 'raw sharp',
  start: (folder) => startOwn('raw-sharp', folder),
  targetOf: ({ path, widthPx, format, isAnimated, shrinksOnLoad }) =>
    `/${widthPx}/${format}/${isAnimated ? 'animated' : 'still'}/${shrinksOnLoad ? 'shrunk' : 'whole'}/${path}`,
};

/** The ceiling of all that keep decoders in processes of their own. */
export const rawSharpApart: Contestant = {
  ...rawSharp,
  name: 'raw sharp apart',
  start: (folder) => startOwn('raw-sharp-apart', folder),
};

/** Its defaults are sharp's, which are quality 80 for JPEG and WebP as with us. */
export const ipx: Contestant = {
  name: 'IPX',
  start: (folder) => startOwn('ipx', folder),
  targetOf: ({ path, widthPx, format, isAnimated }) =>
    `/w_${widthPx},f_${format}${isAnimated ? ',animated' : ''}/${path}`,
};

/** Servers of other languages that take part with `--peer`, with quality 80 as with us. */
export const otherPeers: Readonly<Record<string, Contestant>> = {
  /** Python, from PyPI: `pip install thumbor`. */
  thumbor: {
    name: 'thumbor',
    knowsAnimations: false,
    start: startThumbor,
    targetOf: ({ path, widthPx, format }) =>
      `/unsafe/${widthPx}x0/filters:format(${format})/${path}`,
  },
  /** Rust, from crates.io: `cargo install oximg`. */
  oximg: {
    name: 'oximg',
    knowsAnimations: false,
    start: (folder) =>
      startServer({
        name: 'compare-oximg',
        command: () => ['oximg'],
        environment: { IMAGES_DIR: folder, QUALITY: '80', OXIMG_WEBP_QUALITY: '80' },
      }),
    targetOf: ({ path, widthPx, format }) => `/resize/${widthPx}/0/${path}@${format}`,
  },
};

function startThumbor(folder: string): Promise<Service> {
  const lines = [
    "LOADER = 'thumbor.loaders.file_loader'",
    `FILE_LOADER_ROOT_PATH = '${folder}'`,
    'QUALITY = 80',
    'ALLOW_UNSAFE_URL = True',
    "STORAGE = 'thumbor.storages.no_storage'",
  ];
  const processes = String(availableParallelism());
  return startServer({
    name: 'compare-thumbor',
    command: (port) => {
      const settings = resolve(REPORT_FOLDER, 'thumbor.conf');
      writeFileSync(settings, lines.join('\n'));
      const address = ['-i', '127.0.0.1', '-p', String(port)];
      return ['thumbor', ...address, '-c', settings, '--processes', processes];
    },
    deathSignal: 'TERM',
  });
}

/**
 * What `--server` is given, a server that somebody else runs on the same originals: a name, an origin with its port, and
 * a template of the request target, with `{width}`, `{format}`, `{path}` (of the original, below the folder), and for
 * animations `{animated}`, which becomes `true` or `false`.
 *
 * @throws Error if it is not of the form `NAME=http://host:port/…`, or has a field of another name
 */
export function parseServer(option: string): Contestant {
  const [, name, origin, template] = /^([^=]+)=(http:\/\/[^/]+:\d+)(\/.*)$/.exec(option) ?? [];
  if (name === undefined || origin === undefined || template === undefined) {
    throw new Error(`--server: expected NAME=http://host:port/path but received ${option}`);
  }
  const fields: Readonly<Record<string, (rendering: Rendering) => string>> = {
    width: ({ widthPx }) => String(widthPx),
    format: ({ format }) => format,
    path: ({ path }) => path,
    animated: ({ isAnimated }) => String(isAnimated),
  };
  for (const [, field = ''] of template.matchAll(/\{([^}]*)\}/g)) {
    if (!(field in fields)) throw new Error(`--server: {${field}} is none of its fields`);
  }
  return {
    name,
    knowsAnimations: template.includes('{animated}'),
    start: async () => ({ origin, pid: undefined, stop: async () => undefined }),
    targetOf: (rendering) =>
      template.replace(/\{([^}]*)\}/g, (_, field: string) => fields[field]?.(rendering) ?? ''),
  };
}
