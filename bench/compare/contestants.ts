import { type Service, startServer, startService } from '../harness/service.ts';
import type { Rendering } from './originals.ts';

/** Somebody who renders images from a folder. */
export interface Contestant {
  readonly name: string;
  readonly start: (folder: string) => Promise<Service>;
  /** How a rendering is asked for. */
  readonly targetOf: (rendering: Rendering) => string;
}

const SERVERS = 'bench/dist/bench/compare/servers';

function startOwn(script: string, name: string, ...options: readonly string[]): Promise<Service> {
  const command = [process.execPath, `${SERVERS}/${script}`, ...options];
  return startServer(command, {}, `bench-report/${name}.log`);
}

export const darkroom: Contestant = {
  name: 'Darkroom',
  // Where a queue is an aim, it is measured elsewhere: here each client waits for its answer.
  start: (folder) =>
    startService(
      { STORAGE_DIR: folder, CACHE_MEMORY_BYTES: '0', CACHE_ORIGINALS_BYTES: '0' },
      'bench-report/compare-darkroom.log',
    ),
  targetOf: ({ darkroomPath }) => darkroomPath,
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

/** Sends the same bytes to everybody. */
export function fixedServer(kind: 'fastify' | 'http', bytes: number): Contestant {
  return {
    name: kind === 'fastify' ? 'bare Fastify' : 'bare node:http',
    start: () => startOwn('fixed-server.js', `compare-${kind}`, kind, String(bytes)),
    targetOf: ({ darkroomPath }) => darkroomPath,
  };
}
