import { type Service, startServer, startService } from '../harness/service.ts';
import { type ForeignServer, fillTemplate, knowsAnimations } from './foreign-server.ts';
import { missingNginx, startImageFilter } from './nginx.ts';
import type { Rendering, RenderingKind } from './originals.ts';

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
  /** What it can render; all where nothing is said. */
  readonly kinds?: readonly RenderingKind[] | undefined;
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
  targetOf: ({ path, widthPx, format, isAnimated }) =>
    `/${widthPx}/${format}/${isAnimated ? 'animated' : 'still'}/${path}`,
};

/** Its defaults are sharp's, which are quality 80 for JPEG and WebP as with us. */
export const ipx: Contestant = {
  name: 'IPX',
  start: (folder) => startOwn('ipx-server', folder),
  targetOf: ({ path, widthPx, format, isAnimated }) =>
    `/w_${widthPx},f_${format}${isAnimated ? ',animated' : ''}/${path}`,
};

/** Debian's, with quality 80 too. It keeps the original's format and one frame. */
const imageFilter: Contestant = {
  name: 'nginx image_filter',
  kinds: ['photos'],
  missing: () => missingNginx('image filter'),
  start: startImageFilter,
  targetOf: ({ path, widthPx }) => `/${widthPx}/${path}`,
};

/** Those that render beside Darkroom. */
export const peers: readonly Contestant[] = [rawSharp, ipx, imageFilter];

/** A server that somebody else runs on the same originals. */
export function foreignContestant(foreign: ForeignServer): Contestant {
  const { name, origin, target } = foreign;
  return {
    name,
    kinds: knowsAnimations(foreign) ? undefined : ['photos', 'avatars'],
    start: async () => ({ origin, pid: undefined, stop: async () => undefined }),
    targetOf: (rendering) => fillTemplate(target, rendering),
  };
}
