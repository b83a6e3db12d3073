import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { type Config, ConfigError } from './config/config.ts';
import { describePlace } from './config/variables/storage-settings.ts';
import { formatCauses, formatReadFailure } from './contract/errors.ts';
import { readExternalPath, verifyExternalPath } from './contract/signing/external-path.ts';
import { loadDefaultAvatars } from './default-avatars/default-avatars.ts';
import { ProxyWatch } from './http/client-address.ts';
import type { ClientLimits } from './http/edge/limits.ts';
import { openExplorer } from './http/explorer/handler.ts';
import { openAttachmentGuard } from './http/media/attachment-guard.ts';
import { MediaHandler } from './http/media/handler.ts';
import { openRelay } from './http/relay/handler.ts';
import { createServer } from './http/server.ts';
import { BlockGuard, createBlockPurge } from './pipeline/blocks/block-guard.ts';
import { BlockList } from './pipeline/blocks/block-list.ts';
import type { SharedObjects } from './pipeline/blocks/ports.ts';
import { createMediaPipeline, type MediaPipeline } from './pipeline/media-pipeline.ts';
import type { Meter } from './pipeline/meter.ts';
import { createObserver, OriginHealth } from './pipeline/originals/origin-health.ts';
import type { OriginalWriter } from './pipeline/originals/original-writer.ts';
import type { Clock, Log, Renderer, ResultStore, Source, VideoSupport } from './pipeline/ports.ts';
import type { Sleep } from './pipeline/purges/edge-purger.ts';
import type { UploadLimits } from './pipeline/uploads/upload-service.ts';
import {
  openListing,
  openMarker,
  openOrigin,
  openOriginalWriter,
  openResultStore,
  openSharedObjects,
} from './storage/open-storage.ts';
import type { SiteDoubles } from './storage/remote/open-sites.ts';
import { listGauges } from './telemetry/gauges.ts';
import type { RequestLog } from './telemetry/log.ts';
import { PrometheusMeter } from './telemetry/metrics.ts';
import { checkReadiness, type Readiness, type ServiceState } from './telemetry/readiness.ts';
import {
  type Confinement,
  describeConfinement,
  listDangers,
} from './workers/confinement/report.ts';
import { type WorkerFiles, WorkerPool } from './workers/pool.ts';

/** Program that starts workers, seen from the compiled `app.js`. */
export const STARTER_FILE = new URL('./workers/starter/main.js', import.meta.url);

/** Replacements for tests, and the log. */
export interface AppParts {
  readonly log: Log;
  /** `undefined`: requests are not logged. */
  readonly requestLog?: RequestLog;
  /** Returns the number of lines that the log has lost. */
  readonly countLostLines?: () => number;
  readonly clock?: Clock;
  readonly origin?: Source;
  readonly renderer?: Renderer;
  readonly resultStore?: ResultStore;
  readonly workerFiles?: Partial<WorkerFiles>;
  readonly clientLimits?: Partial<ClientLimits>;
  readonly originalWriter?: OriginalWriter;
  readonly uploadLimits?: Partial<UploadLimits>;
  readonly siteDoubles?: SiteDoubles;
  /** Milliseconds since 1970. */
  readonly wallClock?: () => number;
  readonly sleep?: Sleep;
  /** Objects beside the list of blocks. */
  readonly objects?: SharedObjects;
}

/** The service. */
export interface App {
  readonly server: FastifyInstance;
  /** The admin listener; `undefined` without `ADMIN_PORT`. */
  readonly admin: FastifyInstance | undefined;
  /** The listener for the platform's API; `undefined` without `INTERNAL_PORT`. */
  readonly internal: FastifyInstance | undefined;
  /**
   * Resolves when the workers are ready; renders wait for them. Rejects with an Error if a worker cannot start. Once the
   * app is closed, the promise does not settle any more.
   */
  readonly started: Promise<void>;
  /** Confinement of the render workers; `undefined` before they are ready, and with a renderer of a test. */
  readonly confinement: Confinement | undefined;
  /** Resolves once the video decoder has been tried, after the workers are ready; never with a renderer of a test. */
  readonly videoSupport: Promise<VideoSupport>;
  /** Stops accepting, waits for running requests, then ends the workers. */
  close(): Promise<void>;
  /** Ends the workers at once, busy ones too: for a process that ends without `close`. */
  endWorkers(): void;
}

/** Tools of all parts. */
interface Tools {
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly meter: Meter;
  readonly log: Log;
}

const systemClock: Clock = { nowMs: () => performance.now() };

/**
 * Creates the service, which does not listen yet; its workers are starting.
 *
 * @throws Error if the storage folder is missing; ConfigError if workers cannot be confined as `REQUIRE_CONFINEMENT` asks
 */
export async function createApp(config: Config, parts: AppParts): Promise<App> {
  const { log, clock = systemClock, wallClock = Date.now } = parts;
  const meter = new PrometheusMeter();
  const tools = { clock, wallClock, meter, log };
  const originHealth = new OriginHealth(clock, (error) => {
    const storage = describePlace(config.storage);
    const reason = formatReadFailure(error);
    log.error({ storage, reason: reason.slice(2) }, `${storage} cannot be read${reason}`);
  });
  const marker = openMarker(config);
  await marker?.look();
  const origin = parts.origin ?? (await openOrigin(config, marker));
  const defaultAvatars = await loadDefaultAvatars();
  const workers = new WorkerPool({
    ...config.renderer,
    starterFile: STARTER_FILE,
    ...parts.workerFiles,
    log,
  });
  const starting = parts.renderer === undefined ? startWorkers(workers, config) : Promise.resolve();
  if (config.renderer.requiresConfinement) await starting;
  const resultStore =
    parts.resultStore ??
    (await openResultStore(config, log).catch((error: unknown) => {
      workers.stop();
      throw error;
    }));
  // Parts that are imported in this function are loaded only where a setting asks for them.
  const external =
    config.external &&
    (await import('./storage/remote/open-sites.ts')).openSites(
      {
        ...config.external,
        version: config.release.version,
        maxWaitMs: config.originReads.maxWaitMs,
      },
      (outcome) => meter.count('externalFetches', outcome),
      parts.siteDoubles,
      (url) => blocks?.check({ originKey: '', url }),
    );
  const edge = await openCdn(config, parts, tools).catch((error: unknown) => {
    workers.stop();
    throw error;
  });
  const list = config.blocklist && (await openBlockList(config.blocklist, parts, tools, workers));
  const blocks = list && new BlockGuard(list, config.blocklist?.blockedBy);
  const pipeline = createMediaPipeline(config, {
    blocks,
    origin,
    edge: edge?.purger,
    observer: createObserver(meter, originHealth),
    external,
    resultStore,
    renderer: parts.renderer ?? workers,
    ...tools,
  });
  const { media, passthrough, purger, store, records, digests } = pipeline;
  if (list && blocks) list.onBlocked = createBlockPurge(blocks, { records, digests, purger, log });
  const tracing =
    config.tracing &&
    (await import('./telemetry/tracing.ts')).openTracing(config, config.tracing, log);
  const handler = new MediaHandler({
    media,
    passthrough,
    defaultAvatars,
    maxAgeSeconds: config.http.maxAgeSeconds,
    robotsTag: config.http.robotsTag,
    reading: config.reading,
    tags: edge?.tags,
    external: config.external,
    blocks,
    guard: openAttachmentGuard(config, tools),
    proxyWatch: config.rates && new ProxyWatch(clock, log),
  });
  const explorer = config.explorer.isOn
    ? await openExplorer(config, {
        listing: await openListing(config),
        originals: pipeline.originals,
        renderer: pipeline.renderer,
        defaultAvatars,
        ...tools,
      })
    : undefined;
  const relay =
    config.relay &&
    openRelay(
      config,
      config.relay,
      {
        writer: parts.originalWriter ?? (await openOriginalWriter(config, marker, config.relay)),
        uploadsWriter:
          config.uploads &&
          (await openOriginalWriter({ storage: config.uploads }, undefined, config.relay)),
        purger,
        digests,
        blocks,
        ...tools,
      },
      parts.uploadLimits,
    );
  const { server, countConnections } = createServer({
    ...config.http,
    limits: parts.clientLimits ?? {},
    handler,
    explorer,
    relay: relay?.handler,
    requests: parts.requestLog,
    tracer: tracing?.tracer,
    ...tools,
  });
  let isClosing = false;
  const state: ServiceState = {
    pipeline,
    workers,
    originHealth,
    marker,
    resultStore,
    uploads: relay?.uploads,
    edge: edge?.purger,
    blocks: list,
    countConnections,
    isClosing: () => isClosing,
  };
  const readiness = (): Readiness => checkReadiness(state);
  meter.watch(listGauges(state, parts.countLostLines ?? (() => 0)));
  meter.inform(
    'darkroom_build_info',
    'Always 1; its labels tell which release runs, and which transforms.',
    { pipeline_release: pipeline.release, commit: '', ...config.release },
  );
  const admin =
    config.admin &&
    (await import('./http/admin/server.ts')).createAdminServer({
      token: config.admin.token,
      release: config.release,
      purger,
      reading: {
        ...config.reading,
        readExternal: (path) => readExternalPath(path, config.external?.pathEncoding),
      },
      metadata: pipeline.metadata,
      edge: edge?.purger,
      readiness,
      metrics: meter,
      blocks: list,
      log,
    });
  if (admin !== undefined) {
    meter.watchProcess();
    // Probes the storage before the first request for the readiness.
    readiness();
  }
  const internal =
    config.internal &&
    (await openInternal(config, config.internal, pipeline, { ...tools, blocks }));
  edge?.purger.start();
  return {
    server,
    admin,
    internal,
    started: starting.catch((error: unknown) => {
      if (!isClosing) throw error;
      return new Promise(() => undefined);
    }),
    get confinement() {
      return workers.confinement;
    },
    videoSupport: workers.videoSupport,
    close: async () => {
      isClosing = true;
      const closingSinceMs = clock.nowMs();
      await Promise.all([server.close(), internal?.close()]);
      // Until here, /readyz says "draining".
      await admin?.close();
      await edge?.purger.close();
      await store?.flush();
      resultStore?.close();
      list?.close();
      workers.stop();
      const leftMs = config.shutdown.graceMs - (clock.nowMs() - closingSinceMs);
      await tracing?.close(leftMs / 2);
    },
    endWorkers: () => workers.stop(),
  };
}

/** @throws ConfigError where `REQUIRE_CONFINEMENT` asks for more than is possible here */
async function startWorkers(workers: WorkerPool, { renderer }: Config): Promise<void> {
  await workers.start();
  const { confinement } = workers;
  if (!renderer.requiresConfinement || confinement === undefined) return;
  if (listDangers(confinement).length === 0) return;
  workers.stop();
  throw new ConfigError(`REQUIRE_CONFINEMENT is true. ${describeConfinement(confinement)}`);
}

const sleepUnlessAborted: Sleep = (durationMs, signal) =>
  sleep(durationMs, undefined, { signal }).catch(() => undefined);

/**
 * Opens tags and purges for the CDN in front; returns `undefined` without one.
 *
 * @throws ConfigError if the place of the list can be neither read nor written
 */
async function openCdn({ edge, blocklist, renderLimits }: Config, parts: AppParts, tools: Tools) {
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
async function openBlockList(
  { place, pollMs }: NonNullable<Config['blocklist']>,
  parts: AppParts,
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
async function openInternal(
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
  log.info({}, 'Media are not scanned: the internal routes report all of them as not NSFW');
  const signatureMode = config.attachments.mode;
  return createInternalServer({ token, maxBodyBytes, media, signatureMode, log });
}
