import { type Service, startServer, startService } from '../harness/service.ts';
import { missingNginx, startImageFilter, startStaticNginx } from './nginx.ts';
import type { Rendering } from './originals.ts';
import { type ForeignServer, fillTemplate } from './url-template.ts';

/** A server, as far as a contest deals with it. */
export interface RunningServer {
  readonly origin: string;
  /** `undefined` where it is not ours. */
  readonly pid: number | undefined;
  readonly stop: (graceMs: number) => Promise<unknown>;
}

/** Somebody who renders images from a folder, or has them. */
export interface Contestant {
  readonly name: string;
  /** What it lacks on this machine; `undefined` where it can run. */
  readonly missing?: () => string | undefined;
  readonly start: (folder: string) => Promise<RunningServer>;
  /** How a rendering is asked for. */
  readonly targetOf: (rendering: Rendering) => string;
}

const SERVERS = 'bench/dist/bench/compare/servers';

/** Starts one of the servers beside this file. */
export function startOwn(
  script: string,
  name: string,
  ...options: readonly string[]
): Promise<Service> {
  const command = [process.execPath, `${SERVERS}/${script}`, ...options];
  return startServer(command, {}, `bench-report/${name}.log`);
}

/**
 * Clients wait for their answers, as with the others, who refuse nothing: on a busy machine Darkroom would. What it
 * does then is the subject of `bench:overload`.
 */
export const PATIENT = { QUEUE_TIMEOUT_MS: '60000' } as const;

export const darkroom: Contestant = {
  name: 'Darkroom',
  start: (folder) =>
    startService(
      { STORAGE_DIR: folder, CACHE_MEMORY_BYTES: '0', CACHE_ORIGINALS_BYTES: '0', ...PATIENT },
      'bench-report/compare-darkroom.log',
    ),
  targetOf: ({ darkroomPath }) => darkroomPath,
};

/** With its caches, as anybody runs it. */
export const keepingDarkroom: Contestant = {
  ...darkroom,
  start: (folder) =>
    startService({ STORAGE_DIR: folder }, 'bench-report/compare-darkroom-keeping.log'),
};

export const rawSharp: Contestant = {
  name: 'raw sharp',
  start: (folder) => startOwn('raw-sharp-server.js', 'compare-raw-sharp', folder),
  targetOf: ({ path, widthPx, format, isAnimated }) =>
    `/${widthPx}/${format}/${isAnimated ? 'animated' : 'still'}/${path}`,
};

/** Its defaults are sharp's, which are quality 80 for JPEG and WebP as with us. */
export const ipx: Contestant = {
  name: 'IPX',
  start: (folder) => startOwn('ipx-server.js', 'compare-ipx', folder),
  targetOf: ({ path, widthPx, format, isAnimated }) =>
    `/w_${widthPx},f_${format}${isAnimated ? ',animated' : ''}/${path}`,
};

/** Debian's, with quality 80 too. It keeps the original's format and one frame: photographs alone. */
export const imageFilter: Contestant = {
  name: 'nginx image_filter',
  missing: () => missingNginx('image filter'),
  start: startImageFilter,
  targetOf: ({ path, widthPx }) => `/${widthPx}/${path}`,
};

/** Sends the same bytes to everybody. */
export function fixedServer(kind: 'fastify' | 'http', bytes: number): Contestant {
  return {
    name: kind === 'fastify' ? 'bare Fastify' : 'bare node:http',
    start: () => startOwn('fixed-server.js', `compare-${kind}`, kind, String(bytes)),
    targetOf: ({ darkroomPath }) => darkroomPath,
  };
}

/** Sends a file of so many bytes. */
export function fileNginx(bytes: number): Contestant {
  return {
    name: 'nginx static',
    missing: () => missingNginx(),
    start: () => startStaticNginx(bytes),
    targetOf: () => '/file',
  };
}

/** A server that somebody else runs on the same originals. */
export function foreignServer({ name, origin, target }: ForeignServer): Contestant {
  return {
    name,
    start: async () => ({ origin, pid: undefined, stop: async () => undefined }),
    targetOf: (rendering) => fillTemplate(target, rendering),
  };
}
