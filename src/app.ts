import type { FastifyInstance } from 'fastify';
import { type Config, ConfigError } from './config/config.ts';
import { describePlace } from './config/storage-settings.ts';
import { loadDefaultAvatars } from './default-avatars/default-avatars.ts';
import type { ClientLimits } from './http/edge/client-limits.ts';
import { openExplorer } from './http/explorer/explorer-handler.ts';
import { ExplorerSigner } from './http/explorer/explorer-signer.ts';
import type { AttachmentGuardOptions } from './http/media/attachment-guard.ts';
import { MediaHandler } from './http/media/media-handler.ts';
import { ProxyWatch } from './http/rate-client.ts';
import { RelayHandler } from './http/relay/relay-handler.ts';
import { createServer } from './http/server.ts';
import { formatReadFailure } from './pipeline/error-causes.ts';
import { createMediaPipeline } from './pipeline/media-pipeline.ts';
import type { ResponseMeter, SiteMeter } from './pipeline/meter.ts';
import { OriginHealth } from './pipeline/originals/origin-health.ts';
import { OriginalDescriber } from './pipeline/originals/original-description.ts';
import type { OriginalWriter } from './pipeline/originals/original-writer.ts';
import {
  type Clock,
  type Lane,
  type Log,
  lanes,
  type Origin,
  type Renderer,
  type ResultStore,
} from './pipeline/ports.ts';
import { type UploadLimits, UploadService } from './pipeline/uploads/upload-service.ts';
import { MemoryCache } from './storage/memory-cache.ts';
import {
  openListing,
  openMarker,
  openOrigin,
  openOriginalWriter,
  openResultStore,
} from './storage/open-storage.ts';
import type { SiteDoubles } from './storage/remote/open-sites.ts';
import { WatchedOrigin } from './storage/watched-origin.ts';
import { listGauges } from './telemetry/gauges.ts';
import { PrometheusMeter } from './telemetry/prometheus-meter.ts';
import type { Readiness } from './telemetry/readiness.ts';
import { judgeReadiness } from './telemetry/readiness.ts';
import type { RequestLog } from './telemetry/request-log.ts';
import type { Tracing } from './telemetry/tracing.ts';
import {
  type Confinement,
  describeConfinement,
  listDangers,
} from './workers/confinement/confinement.ts';
import { renderOnceStarted } from './workers/starting-renderer.ts';
import { WorkerPool } from './workers/worker-pool.ts';

/** Where the compiled worker is, seen from the compiled `app.js`. */
export const WORKER_FILE = new URL('./workers/child/main.js', import.meta.url);

/** Parts that a test brings along instead of the real ones. */
export interface AppParts {
  readonly log: Log;
  /** Without one, requests are not logged. */
  readonly requestLog?: RequestLog;
  /** How many lines the log has lost. */
  readonly countLostLines?: () => number;
  readonly clock?: Clock;
  readonly origin?: Origin;
  readonly renderer?: Renderer;
  readonly resultStore?: ResultStore;
  readonly workerFile?: URL;
  readonly clientLimits?: Partial<ClientLimits>;
  readonly originalWriter?: OriginalWriter;
  readonly uploadLimits?: Partial<UploadLimits>;
  /** How other sites are reached. */
  readonly siteDoubles?: SiteDoubles;
  /** Milliseconds since 1970. */
  readonly wallClock?: () => number;
}

/** The service, put together. */
export interface App {
  readonly server: FastifyInstance;
  /** The admin listener; `undefined` where it is switched off. */
  readonly admin: FastifyInstance | undefined;
  /**
   * Settles when the workers are ready; requests that come before wait for them. Does not settle any more once the
   * app is closed. Rejects with an Error if a worker cannot start.
   */
  readonly started: Promise<void>;
  /** What the render workers are kept from; `undefined` before they are ready, and where a test brought its own. */
  readonly confinement: Confinement | undefined;
  /** Stops accepting, lets what runs end, then ends the workers. */
  close(): Promise<void>;
  /** Ends the workers at once, busy ones too, for a process that ends without `close`. */
  endWorkers(): void;
}

const systemClock: Clock = { nowMs: () => performance.now() };

function countReady(workers: WorkerPool): Readonly<Record<Lane, number>> {
  const countOf = (lane: Lane): number => workers.readyProcessIdsOf(lane).length;
  return { light: countOf('light'), heavy: countOf('heavy') };
}

/**
 * Puts the service together; it does not listen yet, and its workers are about to start.
 *
 * @throws Error if the storage folder is gone, ConfigError if workers cannot be confined as they must be
 */
export async function createApp(config: Config, parts: AppParts): Promise<App> {
  const { log, clock = systemClock, wallClock = Date.now } = parts;
  const meter = new PrometheusMeter();
  const originHealth = new OriginHealth(clock, (error) => {
    const storage = describePlace(config.storage);
    const reason = formatReadFailure(error);
    log.error({ storage, reason: reason.slice(2) }, `${storage} cannot be read${reason}`);
  });
  const marker = openMarker(config);
  await marker?.look();
  const origin = new WatchedOrigin(parts.origin ?? (await openOrigin(config, marker)), {
    meter,
    health: originHealth,
  });
  const defaultAvatars = await loadDefaultAvatars();
  const workers = new WorkerPool({
    ...config.renderer,
    workerFile: parts.workerFile ?? WORKER_FILE,
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
  const remote = await openExternal(config, meter, parts.siteDoubles);
  const pipeline = createMediaPipeline(config, {
    createCache: (options) => new MemoryCache(options),
    origin,
    external: remote,
    resultStore,
    renderer: parts.renderer ?? renderOnceStarted(workers, starting),
    renderSlots: () => workers.slots,
    meter,
    clock,
    wallClock,
    log,
  });
  const { media, passthrough, purger, store } = pipeline;
  const tracing = await openTracing(config, log);
  const watchers = {
    meter,
    requests: parts.requestLog,
    tracer: tracing?.tracer,
    clock,
  };
  const { maxAgeSeconds } = config.http;
  const handler = new MediaHandler({
    media,
    passthrough,
    defaultAvatars,
    maxAgeSeconds,
    external: config.external,
    attachments: guardOf(config, wallClock, meter),
    proxyWatch: config.rates && new ProxyWatch(clock, log),
  });
  const limits = parts.clientLimits ?? {};
  const explorer = config.explorer.isOn
    ? await openExplorer({
        listing: await openListing(config),
        defaultAvatars,
        clock,
        describer: new OriginalDescriber({
          origin,
          limits: config.originLimits,
          budget: pipeline.originalsBudget,
        }),
        signer: createSigner(config, wallClock),
      })
    : undefined;
  const { relay } = config;
  const uploads =
    relay &&
    new UploadService({
      writer: parts.originalWriter ?? (await openOriginalWriter(config, marker, relay)),
      purger,
      limits: { ...relay.limits, ...parts.uploadLimits },
      clock,
      meter,
      log,
    });
  const { server, countConnections } = createServer({
    ...config.http,
    ...watchers,
    limits,
    handler,
    explorer,
    relay:
      relay &&
      uploads &&
      new RelayHandler({ keys: relay.keys, bucket: bucketOf(config), uploads, wallClock }),
    log,
  });
  let isClosing = false;
  const readiness = (): Readiness => {
    originHealth.probe(origin, config.originLimits.firstByteTimeoutMs);
    marker?.lookSoon();
    return judgeReadiness({
      isClosing,
      readyWorkers: countReady(workers),
      origin: originHealth,
      isMarkerMissing: marker?.isMissing ?? false,
      isStoreFailing: store?.isFailing ?? false,
      storeShortcoming: resultStore?.shortcoming?.(),
      areUploadsFull: uploads?.isFull ?? false,
      crowdedLanes: lanes.filter((lane) => pipeline.admission.isCrowded(lane)),
      connections: countConnections(),
    });
  };
  meter.watch(
    listGauges({
      config,
      pipeline,
      resultStore,
      workers,
      originHealth,
      countConnections,
      judge: readiness,
      countUploads: uploads && (() => uploads.usage),
      countLostLines: parts.countLostLines ?? (() => 0),
    }),
  );
  let admin: FastifyInstance | undefined;
  if (config.admin !== undefined) {
    const { createAdminServer } = await import('./http/admin/admin-server.ts');
    const { token } = config.admin;
    const { release } = config;
    admin = createAdminServer({ token, purger, release, readiness, metrics: meter, log });
    meter.watchProcess();
    // So that the first request for the readiness finds the storage probed.
    readiness();
  }
  return {
    server,
    admin,
    started: starting.catch((error: unknown) => {
      if (!isClosing) throw error;
      return new Promise(() => undefined);
    }),
    get confinement() {
      return workers.confinement;
    },
    close: async () => {
      isClosing = true;
      const closingSinceMs = clock.nowMs();
      await server.close();
      // Until here it says that we are not ready.
      await admin?.close();
      await store?.flush();
      resultStore?.close();
      remote?.connections.close();
      workers.stop();
      const leftMs = config.shutdown.graceMs - (clock.nowMs() - closingSinceMs);
      await tracing?.close(leftMs / 2);
    },
    endWorkers: () => workers.stop(),
  };
}

/** How URLs of attachments are judged; `undefined` where they are not. */
function guardOf(
  { attachments: { mode, signing } }: Config,
  wallClock: () => number,
  { signatures: counts }: ResponseMeter,
): AttachmentGuardOptions | undefined {
  return mode === 'off' || signing === undefined ? undefined : { mode, signing, wallClock, counts };
}

/**
 * What signs for all who can look at the explorer, if there are keys. Where one is set, the explorer is on only if
 * `EXPLORER=on` was said (`config.ts`): a page that signs for whoever opens it is a key.
 */
function createSigner(
  { attachments, external }: Config,
  wallClock: () => number,
): ExplorerSigner | undefined {
  const signing = {
    attachments: attachments.mode === 'off' ? undefined : attachments.signing,
    external: external?.keys,
  };
  const hasKeys = signing.attachments !== undefined || signing.external !== undefined;
  return hasKeys ? new ExplorerSigner({ ...signing, nowMs: wallClock }) : undefined;
}

/** The name of the bucket of the originals; a folder has none. */
function bucketOf({ storage }: Config): string | undefined {
  return storage.kind === 's3' ? storage.bucket : undefined;
}

/** Opens the way to other sites, if external media are switched on; where not, nothing of it is loaded. */
async function openExternal(config: Config, meter: SiteMeter, doubles?: SiteDoubles) {
  const { external, release, originReads } = config;
  if (external === undefined) return undefined;
  const { openSites } = await import('./storage/remote/open-sites.ts');
  const settings = { ...external, version: release.version, maxWaitMs: originReads.maxWaitMs };
  return openSites(settings, meter, doubles);
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

/** Starts tracing, if it is wanted; where not, nothing of OpenTelemetry is loaded. */
async function openTracing(
  { tracing, http, release }: Config,
  log: Log,
): Promise<Tracing | undefined> {
  if (tracing === undefined) return undefined;
  const { startTracing } = await import('./telemetry/tracing.ts');
  const scheme = http.tls === undefined ? 'http' : 'https';
  return startTracing({ ...tracing, scheme, version: release.version, log });
}
