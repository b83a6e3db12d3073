import type { FastifyInstance } from 'fastify';
import { type Config, ConfigError } from './config/config.ts';
import { describeLocation } from './config/variables/storage-settings.ts';
import { externalKeyOf } from './contract/signing/external-path.ts';
import { loadDefaultAvatars } from './default-avatars/default-avatars.ts';
import type { Doubles } from './doubles.ts';
import { clientLimits } from './http/connections/connections.ts';
import { openExplorer } from './http/explorer/handler.ts';
import { createMediaHandler } from './http/media/handler.ts';
import { createRelayHandler } from './http/relay/handler.ts';
import { createServer } from './http/server.ts';
import { BlockGuard } from './pipeline/blocks/block-guard.ts';
import { createBlockPurge } from './pipeline/blocks/block-purge.ts';
import { createMediaPipeline } from './pipeline/media-pipeline.ts';
import { createObserver, OriginHealth } from './pipeline/originals/origin-health.ts';
import type { Clock, Log } from './pipeline/ports.ts';
import { UploadService } from './pipeline/uploads/upload-service.ts';
import { InlineOriginals } from './storage/inline-originals.ts';
import { openBlocks } from './storage/open-blocks.ts';
import { openResultStore, openStorage } from './storage/open-storage.ts';
import { listGauges } from './telemetry/gauges.ts';
import type { RequestLog } from './telemetry/log.ts';
import { PrometheusMeter } from './telemetry/metrics.ts';
import { probeStorage, type ServiceState } from './telemetry/readiness.ts';
import {
  describeWorkers,
  listExposures,
  type WorkerConfinement,
} from './workers/confinement/report.ts';
import { WorkerPool } from './workers/pool.ts';
import type { VideoSupport } from './workers/video/video-decoder.ts';

/** Entry of the fork server, relative to the compiled `app.js`. */
export const FORK_SERVER_FILE = new URL('./workers/fork-server/main.js', import.meta.url);

/** The log, and replacements for tests. */
export interface AppParts extends Doubles {
  readonly log: Log;
  /** Omit to log no requests. */
  readonly requestLog?: RequestLog;
  /** Returns the number of lost log lines. */
  readonly countLostLines?: () => number;
}

/** The service. */
export interface App {
  readonly server: FastifyInstance;
  /** Admin listener, if `ADMIN_PORT` is set. */
  readonly admin: FastifyInstance | undefined;
  /** Listener for the platform's API, if `INTERNAL_PORT` is set and the public listener does not serve it. */
  readonly internal: FastifyInstance | undefined;
  /** Resolves when the workers are ready; rejects with an Error if one cannot start. Never settles after `close`. */
  readonly started: Promise<void>;
  /** Confinement of the workers; `undefined` until they are ready, and if a test replaces them. */
  readonly confinement: WorkerConfinement | undefined;
  /** Resolves once the workers are ready and the video decoder has been tested; never if a test replaces them. */
  readonly videoSupport: Promise<VideoSupport>;
  /** Stops accepting requests, waits for running ones, then ends the workers. */
  close(): Promise<void>;
  /** Ends the workers immediately, for an exit without `close`. */
  endWorkers(): void;
}

/**
 * Creates the service, which does not listen yet; its workers are starting.
 *
 * @throws Error if the storage directory is missing; ConfigError if workers cannot be confined as `REQUIRE_CONFINEMENT`
 *   demands
 */
export async function createApp(config: Config, parts: AppParts): Promise<App> {
  const workers = new WorkerPool({
    ...config.renderer,
    forkServerFile: FORK_SERVER_FILE,
    ...parts.workerFiles,
    log: parts.log,
  });
  try {
    return await openApp(config, parts, workers);
  } catch (error) {
    workers.stop();
    throw error;
  }
}

async function openApp(config: Config, parts: AppParts, workers: WorkerPool): Promise<App> {
  const { log, wallClock = Date.now } = parts;
  const clock: Clock = parts.clock ?? { nowMs: () => performance.now() };
  const meter = new PrometheusMeter();
  const tools = { clock, wallClock, meter, log };
  const originHealth = new OriginHealth(clock, log, describeLocation(config.storage));
  const storage = await openStorage(config.storage, config.originLimits);
  const uploads = config.uploads && (await openStorage(config.uploads, config.originLimits));
  const defaultAvatars = await loadDefaultAvatars();
  const starting = parts.renderer === undefined ? startWorkers(workers, config) : Promise.resolve();
  if (config.renderer.requiresConfinement) await starting;
  const resultStore =
    parts.resultStore ?? (config.resultStore && (await openResultStore(config.resultStore, log)));
  const { list, cdn } = await openBlocks(config, parts, tools);
  const blocks = list && new BlockGuard(list, config.blocklist?.blockedBy);
  // Modules of optional features are imported only if a setting enables them.
  const external =
    config.external &&
    (await import('./storage/remote/open-sites.ts')).openSites(
      config.external,
      (outcome) => meter.count('externalFetches', outcome),
      parts.siteDoubles,
      (url) => blocks?.check({ originKey: externalKeyOf(url), url }),
    );
  const inline = config.internal && new InlineOriginals();
  const origin = parts.origin ?? storage.origin;
  const pipeline = createMediaPipeline(
    config,
    { origin, external, uploads: config.internal && uploads?.origin, inline },
    createObserver(meter, originHealth),
    parts.renderer ?? workers,
    resultStore,
    { blocks, cdn: cdn?.purger, ...tools },
  );
  const { media, metadata, purger, store } = pipeline;
  if (list && blocks) list.onBlocked = createBlockPurge(blocks, pipeline, purger);
  const tracing =
    config.tracing &&
    (await import('./telemetry/tracing.ts')).openTracing(config, config.tracing, log);
  const explorer = config.explorer.isOn
    ? await openExplorer(config, {
        listing: storage.openListing(),
        metadata,
        defaultAvatars,
        ...tools,
      })
    : undefined;
  const uploadService =
    config.relay &&
    new UploadService(
      {
        originals: parts.originalWriter ?? storage.openWriter(config.relay.maxConnections),
        uploads: uploads?.openWriter(config.relay.maxConnections),
      },
      { ...config.relay.limits, ...parts.uploadLimits },
      config.relay.stripsMetadata,
      pipeline,
    );
  const internal =
    config.internal &&
    inline &&
    (await import('./http/internal/server.ts')).openInternalServer(
      config,
      config.internal,
      pipeline,
      inline,
    );
  const sharedInternal = config.internal?.isShared === true ? internal : undefined;
  await sharedInternal?.ready();
  // Idle clients must not use up the grace period of running requests.
  const idleGraceMs = Math.min(clientLimits.idleGraceMs, config.shutdown.graceMs / 2);
  const { server, countConnections } = createServer(
    config.http,
    {
      media: createMediaHandler(config, media, defaultAvatars, blocks, tools),
      explorer,
      relay:
        config.relay &&
        uploadService &&
        createRelayHandler(config, config.relay, uploadService, wallClock),
      internal: sharedInternal,
    },
    { requests: parts.requestLog, tracer: tracing, ...tools },
    cdn?.tags,
    { idleGraceMs, ...parts.clientLimits },
  );
  let isClosing = false;
  const state: ServiceState = {
    pipeline,
    workers,
    originHealth,
    marker: storage.marker,
    resultStore,
    uploads: uploadService,
    cdn: cdn?.purger,
    blocks: list,
    countConnections,
    isClosing: () => isClosing,
  };
  meter.watch(listGauges(state, parts.countLostLines ?? (() => 0)));
  meter.addInfo(
    'darkroom_build_info',
    'Always 1; its labels report the running release and its transforms.',
    { pipeline_release: pipeline.release, commit: '', ...config.release },
  );
  const admin =
    config.admin &&
    (await import('./http/admin/server.ts')).createAdminServer(
      config,
      config.admin,
      state,
      meter,
      log,
    );
  if (admin !== undefined) {
    meter.watchProcess();
    probeStorage(state);
  }
  cdn?.purger.start();
  return {
    server,
    admin,
    internal: sharedInternal === undefined ? internal : undefined,
    started: starting.catch((error: unknown) =>
      isClosing ? new Promise(() => undefined) : Promise.reject(error),
    ),
    get confinement() {
      return workers.confinement;
    },
    videoSupport: workers.videoSupport,
    close: async () => {
      isClosing = true;
      const closingSinceMs = clock.nowMs();
      await Promise.all([server.close(), internal?.close()]);
      // Until here, /readyz reports "draining".
      await admin?.close();
      pipeline.close();
      await cdn?.purger.close();
      await store?.flush();
      resultStore?.close();
      list?.close();
      workers.stop();
      await tracing?.close((config.shutdown.graceMs - (clock.nowMs() - closingSinceMs)) / 2);
    },
    endWorkers: () => workers.stop(),
  };
}

/** @throws ConfigError if `REQUIRE_CONFINEMENT` demands more than this machine supports */
async function startWorkers(workers: WorkerPool, { renderer }: Config): Promise<void> {
  await workers.start();
  const { confinement } = workers;
  if (renderer.requiresConfinement && confinement && listExposures(confinement).length > 0) {
    throw new ConfigError(`REQUIRE_CONFINEMENT is true. ${describeWorkers(confinement)}`);
  }
}
