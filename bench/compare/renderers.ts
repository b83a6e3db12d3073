import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { REPORT_FOLDER } from '../harness/report.ts';
import { type Service, startServer, startService } from '../harness/service.ts';
import type { RunningServer } from './contest.ts';
import type { Rendering } from './originals.ts';

/** Server that renders images from a folder. */
export interface Renderer {
  readonly name: string;
  readonly start: (folder: string) => Promise<RunningServer>;
  readonly targetOf: (rendering: Rendering) => string;
  readonly isForStillsOnly?: boolean;
}

/** Starts one of the servers of `own-servers.ts`. */
export function startOwn(name: string, ...options: readonly string[]): Promise<Service> {
  const script = 'bench/dist/bench/compare/own-servers.js';
  const command = () => [process.execPath, script, name, ...options];
  return startServer({ name: `compare-${name}`, command });
}

/** Settings for originals behind the `folder` server of `own-servers.ts`, as a bucket. */
export const bucketSettings = (endpoint: string) => ({
  STORAGE: 's3',
  S3_BUCKET: 'originals',
  S3_ENDPOINT: endpoint,
  AWS_ACCESS_KEY_ID: 'anybody',
  AWS_SECRET_ACCESS_KEY: 'whatever',
  AWS_EC2_METADATA_DISABLED: 'true',
});

/**
 * Settings without caches. Clients wait as long as for other servers, which refuse nothing: `bench:overload` measures what
 * Darkroom refuses on a busy machine.
 */
export const COLD = {
  CACHE_MEMORY_BYTES: '0',
  CACHE_ORIGINALS_BYTES: '0',
  QUEUE_TIMEOUT_MS: '60000',
} as const;

export const darkroom: Renderer = {
  name: 'Darkroom',
  start: (folder) => startService('compare-darkroom', { STORAGE_DIR: folder, ...COLD }),
  targetOf: ({ darkroomPath }) => darkroomPath,
};

/** Ceiling: sharp in the process that serves. */
export const rawSharp: Renderer = {
  name: 'raw sharp',
  start: (folder) => startOwn('raw-sharp', folder),
  targetOf: ({ path, widthPx, format, isAnimated, shrinksOnLoad }) =>
    `/${widthPx}/${format}/${isAnimated ? 'animated' : 'still'}/${shrinksOnLoad ? 'shrunk' : 'whole'}/${path}`,
};

/** Ceiling of all servers that keep decoders in processes of their own. */
export const rawSharpApart: Renderer = {
  ...rawSharp,
  name: 'raw sharp apart',
  start: (folder) => startOwn('raw-sharp-apart', folder),
};

/** IPX with its defaults, which are sharp's: quality 80 for JPEG and WebP, as in Darkroom. */
export const ipx: Renderer = {
  name: 'IPX',
  start: (folder) => startOwn('ipx', folder),
  targetOf: ({ path, widthPx, format, isAnimated }) =>
    `/w_${widthPx},f_${format}${isAnimated ? ',animated' : ''}/${path}`,
};

const thumbor: Renderer = {
  name: 'thumbor',
  isForStillsOnly: true,
  start: (folder) => {
    const settings = resolve(REPORT_FOLDER, 'thumbor.conf');
    const lines = [
      "LOADER = 'thumbor.loaders.file_loader'",
      `FILE_LOADER_ROOT_PATH = '${folder}'`,
      'QUALITY = 80',
      'ALLOW_UNSAFE_URL = True',
      "STORAGE = 'thumbor.storages.no_storage'",
    ];
    writeFileSync(settings, lines.join('\n'));
    const options = ['-c', settings, '--processes', String(availableParallelism())];
    return startServer({
      name: 'compare-thumbor',
      command: (port) => ['thumbor', '-i', '127.0.0.1', '-p', String(port), ...options],
      deathSignal: 'TERM',
    });
  },
  targetOf: ({ path, widthPx, format }) => `/unsafe/${widthPx}x0/filters:format(${format})/${path}`,
};

const oximg: Renderer = {
  name: 'oximg',
  isForStillsOnly: true,
  start: (folder) =>
    startServer({
      name: 'compare-oximg',
      command: () => ['oximg'],
      environment: { IMAGES_DIR: folder, QUALITY: '80', OXIMG_WEBP_QUALITY: '80' },
    }),
  targetOf: ({ path, widthPx, format }) => `/resize/${widthPx}/0/${path}@${format}`,
};

/** Finds a server for `--peer`. */
export function findPeer(wanted: string): Renderer {
  const peer = [thumbor, oximg].find(({ name }) => name === wanted);
  if (peer === undefined) throw new Error('--peer: expected thumbor or oximg');
  return peer;
}

/** Parses `--server`: a server that somebody else runs on the same folder, for stills. */
export function parseServer(option: string): Renderer {
  const [, name, origin, template] = /^([^=]+)=(http:\/\/[^/]+:\d+)(\/.*)$/.exec(option) ?? [];
  if (name === undefined || origin === undefined || template === undefined) {
    throw new Error('--server: expected NAME=http://host:port/…{width}…{format}…{path}…');
  }
  return {
    name,
    isForStillsOnly: true,
    start: async () => ({ origin, pid: undefined, stop: async () => undefined }),
    targetOf: ({ widthPx, format, path }) =>
      template
        .replace('{width}', String(widthPx))
        .replace('{format}', format)
        .replace('{path}', path),
  };
}
