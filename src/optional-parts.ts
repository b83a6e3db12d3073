import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { type Config, ConfigError } from './config/config.ts';
import { formatCauses } from './contract/errors.ts';
import { verifyExternalPath } from './contract/signing/external-path.ts';
import type { BlockGuard } from './pipeline/blocks/block-guard.ts';
import { BlockList } from './pipeline/blocks/block-list.ts';
import type { SharedObjects } from './pipeline/blocks/ports.ts';
import type { MediaPipeline } from './pipeline/media-pipeline.ts';
import type { Meter } from './pipeline/meter.ts';
import type { Clock, Log } from './pipeline/ports.ts';
import type { Sleep } from './pipeline/purges/edge-purger.ts';
import { openOrigin, openSharedObjects } from './storage/open-storage.ts';
import type { WorkerPool } from './workers/pool.ts';

/** Parts of the service that several folders make up, and that exist only where settings ask for them. */

/** Tools that every part may use. */
interface Tools {
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly meter: Meter;
  readonly log: Log;
}

/** Replacements for tests. */
interface Doubles {
  /** Objects beside the list of blocks. */
  readonly objects?: SharedObjects;
  readonly sleep?: Sleep;
}

const sleepUnlessAborted: Sleep = (durationMs, signal) =>
  sleep(durationMs, undefined, { signal }).catch(() => undefined);

/**
 * Opens tags and purges for the CDN in front; returns `undefined` without one.
 *
 * @throws ConfigError if the place of the list can be neither read nor written
 */
export async function openCdn(
  { edge, blocklist, renderLimits }: Config,
  parts: Doubles,
  tools: Tools,
) {
  if (edge === undefined || blocklist === undefined) return undefined;
  const { openEdgeApi } = await import('./storage/edge/edge-api.ts');
  const { openEdge } = await import('./pipeline/purges/open-edge.ts');
  const api = await openEdgeApi(edge);
  try {
    const objects = parts.objects ?? (await openSharedObjects(blocklist));
    const sleep = parts.sleep ?? sleepUnlessAborted;
    return await openEdge(edge.edge, renderLimits.timeoutMs, { ...tools, objects, api, sleep });
  } catch (error) {
    const reason = formatCauses(error);
    throw new ConfigError(`BLOCKLIST: expected a place that can be read and written${reason}`);
  }
}

/** @throws ConfigError if the list of blocks cannot be read or written */
export async function openBlockList(
  { place, pollMs }: NonNullable<Config['blocklist']>,
  parts: Doubles,
  tools: Tools,
  workers: WorkerPool,
): Promise<BlockList> {
  try {
    const objects = parts.objects ?? (await openSharedObjects({ place }));
    return await BlockList.open({ objects, pollMs, ...tools });
  } catch (error) {
    workers.stop();
    throw new ConfigError(`BLOCKLIST: the list cannot be used${formatCauses(error)}`);
  }
}

/**
 * Opens the listener for the platform's API.
 *
 * @throws Error if the folder of uploads is missing
 */
export async function openInternal(
  config: Config,
  { token, maxBodyBytes, bucket }: NonNullable<Config['internal']>,
  pipeline: MediaPipeline,
  { blocks, clock, log }: Tools & { readonly blocks: BlockGuard | undefined },
): Promise<FastifyInstance> {
  const { InternalMedia } = await import('./pipeline/internal/internal-media.ts');
  const { createInternalServer } = await import('./http/internal/server.ts');
  const { GivenBytes } = await import('./storage/given-bytes.ts');
  const { external, uploads, originLimits } = config;
  const given = new GivenBytes();
  const media = new InternalMedia({
    originals: pipeline,
    uploads:
      uploads &&
      pipeline.openBeside(await openOrigin({ storage: uploads, originLimits }, undefined)),
    given: { ...pipeline.openBeside(given), source: given },
    buckets: { originals: bucket, uploads: uploads?.bucket },
    reading: {
      ...config.reading,
      readExternal:
        external && ((path) => verifyExternalPath(path, external.keys, external.pathEncoding)),
    },
    maxGivenBytes: Math.floor((maxBodyBytes * 3) / 4),
    blocks,
    clock,
  });
  log.info({}, 'Nothing scans media: the internal routes say of all that they are not NSFW');
  const signatureMode = config.attachments.mode;
  return createInternalServer({ token, maxBodyBytes, media, signatureMode, log });
}
