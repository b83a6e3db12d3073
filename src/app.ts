import type { FastifyInstance } from 'fastify';
import { createFilesystemOrigin } from './adapters/filesystem-origin.ts';
import { createFilesystemResultStore } from './adapters/filesystem-result-store.ts';
import { MemoryCache } from './adapters/memory-cache.ts';
import { PrometheusMeter } from './adapters/prometheus-meter.ts';
import type { Confinement } from './adapters/worker-confinement.ts';
import { WorkerRenderer } from './adapters/worker-renderer.ts';
import type { Config } from './config.ts';
import { loadDefaultAvatars } from './default-avatars/default-avatars.ts';
import { openExplorer } from './explorer-setup.ts';
import { createAdminServer } from './http/admin-server.ts';
import { mediaCacheControl } from './http/cache-policy.ts';
import type { ClientLimits } from './http/client-limits.ts';
import { HitLane } from './http/hit-lane.ts';
import { MediaHandler } from './http/media-handler.ts';
import { createServer } from './http/server.ts';
import { TargetMemory } from './http/target-memory.ts';
import { Admission } from './pipeline/admission.ts';
import { Gate } from './pipeline/gate.ts';
import { MediaService } from './pipeline/media-service.ts';
import { OriginalVersions } from './pipeline/original-versions.ts';
import { Originals } from './pipeline/originals.ts';
import { OriginalsBudget } from './pipeline/originals-budget.ts';
import type {
  Clock,
  KeptOriginal,
  Log,
  MediaResult,
  Origin,
  Renderer,
  ResultStore,
} from './pipeline/ports.ts';
import { Purger } from './pipeline/purger.ts';
import { RefusalMemory } from './pipeline/refusal-memory.ts';
import { Results } from './pipeline/results.ts';
import { Transformer } from './pipeline/transformer.ts';
import { VerbatimService } from './pipeline/verbatim-service.ts';

/** Where the compiled worker is, seen from the compiled `app.js`. */
const WORKER_FILE = new URL('./worker/main.js', import.meta.url);

/** Part of the memory for originals that one may take: a large one would drive out all avatars. */
const MAX_ORIGINAL_SHARE = 1 / 8;

/** Parts that a test brings along instead of the real ones. */
export interface AppParts {
  readonly log: Log;
  readonly clock?: Clock;
  readonly origin?: Origin;
  readonly renderer?: Renderer;
  readonly resultStore?: ResultStore;
  readonly workerFile?: URL;
  readonly clientLimits?: Partial<ClientLimits>;
}

/** The service, put together. */
export interface App {
  readonly server: FastifyInstance;
  /** Where the service is told what to forget; `undefined` where it is switched off. */
  readonly admin: FastifyInstance | undefined;
  /** What the render workers are kept from; `undefined` where a test brought its own renderer. */
  readonly confinement: Confinement | undefined;
  /** Stops accepting, lets what runs end, then ends the workers. */
  close(): Promise<void>;
}

const systemClock: Clock = { nowMs: () => performance.now() };

/**
 * Puts the service together; it does not listen yet.
 *
 * @throws Error if a worker cannot start or the storage folder is gone
 */
export async function createApp(config: Config, parts: AppParts): Promise<App> {
  const { log, clock = systemClock } = parts;
  const origin = parts.origin ?? (await openOrigin(config));
  const defaultAvatars = await loadDefaultAvatars();
  const workers = new WorkerRenderer({
    ...config.renderer,
    workerFile: parts.workerFile ?? WORKER_FILE,
    log,
  });
  if (parts.renderer === undefined) await workers.start();

  const { originLimits } = config;
  const meter = new PrometheusMeter();
  const refusals = new RefusalMemory(config.http.maxAgeSeconds.refused * 1000, clock);
  const originalMemory = new MemoryCache<KeptOriginal>({
    maxBytes: config.cache.originalBytes,
    maxShare: MAX_ORIGINAL_SHARE,
    bytesOf: ({ bytes }) => bytes,
  });
  const resultStore = parts.resultStore ?? (await openResultStore(config, log));
  const versions = new OriginalVersions(config.versions, clock);
  const results = new Results({
    cache: new MemoryCache<MediaResult>({
      maxBytes: config.cache.maxBytes,
      bytesOf: ({ body }) => body,
    }),
    store: resultStore,
    clock,
    log,
  });
  const media = new MediaService({
    results,
    refusals,
    versions,
    originals: new Originals({
      source: {
        access: { origin, limits: originLimits, gate: new Gate(config.originReads) },
        budget: new OriginalsBudget(config.originalsMemoryBytes),
      },
      versions,
      cache: originalMemory,
      clock,
    }),
    transformer: new Transformer({
      renderer: parts.renderer ?? workers,
      admission: new Admission(config.admission, clock, meter),
      refusals,
      limits: config.renderLimits,
    }),
  });
  const targets = new TargetMemory();
  const { maxAgeSeconds } = config.http;
  const handler = new MediaHandler({
    media,
    verbatim: new VerbatimService({
      origin,
      limits: originLimits,
      gate: new Gate(config.originStreams),
    }),
    defaultAvatars,
    targets,
    maxAgeSeconds,
  });
  const hits = new HitLane({
    findHit: ({ request, key }) => media.findHit(request, key),
    targets,
    cacheControl: mediaCacheControl(maxAgeSeconds),
    clock,
  });
  const limits = parts.clientLimits ?? {};
  const explorer = config.explorer.isOn ? await openExplorer(config, defaultAvatars) : undefined;
  const server = createServer({ ...config.http, limits, handler, explorer, hits, clock, log });
  const purger = new Purger({ versions, originals: originalMemory, refusals, results });
  let isClosing = false;
  const readiness = () => {
    if (isClosing) return 'draining';
    return workers.readyProcessIdsOf('light').length > 0 ? 'ready' : 'no worker is ready';
  };
  const admin =
    config.admin &&
    createAdminServer({ token: config.admin.token, purger, readiness, metrics: meter, log });
  return {
    server,
    admin,
    confinement: workers.confinement,
    close: async () => {
      isClosing = true;
      await server.close();
      // Until here it says that we are not ready.
      await admin?.close();
      await results.flush();
      resultStore?.close();
      workers.stop();
    },
  };
}

async function openResultStore(
  { resultStore }: Config,
  log: Log,
): Promise<ResultStore | undefined> {
  if (resultStore?.kind === 'filesystem') {
    return createFilesystemResultStore({ ...resultStore, log });
  }
  if (resultStore === undefined) return undefined;
  const { createS3ResultStore } = await import('./adapters/s3-result-store.ts');
  return createS3ResultStore(resultStore);
}

async function openOrigin({ storage, originLimits }: Config): Promise<Origin> {
  if (storage.kind === 'filesystem') return createFilesystemOrigin(storage.folder);
  // Only where it is needed: the SDK takes 0.2 s and 25 MB.
  const { createS3Origin } = await import('./adapters/s3-origin.ts');
  return createS3Origin({ ...storage, stallTimeoutMs: originLimits.wholeBodyTimeoutMs });
}
