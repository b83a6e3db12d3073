import type { Config } from '../config/config.ts';
import { releaseWithEffort } from '../contract/image-formats.ts';
import type { BlockGuard } from './blocks/block-guard.ts';
import { MemoryCache } from './memory-cache.ts';
import { MetadataService } from './metadata/metadata.ts';
import type { Meter } from './meter.ts';
import {
  createSiteBackend,
  createStorageBackend,
  type ExternalMedia,
  type SourceObserver,
} from './originals/backend.ts';
import { MemoryBudget } from './originals/memory-budget.ts';
import { Originals } from './originals/originals.ts';
import { PassthroughService } from './originals/passthrough.ts';
import { OriginalRecords } from './originals/records.ts';
import type {
  CachedOriginal,
  Clock,
  Log,
  MediaResult,
  Renderer,
  ResultStore,
  Source,
} from './ports.ts';
import type { EdgePurger } from './purges/edge-purger.ts';
import { Rates } from './rates.ts';
import { Admission } from './render/admission.ts';
import { AdmittedRenderer } from './render/admitted-renderer.ts';
import { Purger } from './results/purger.ts';
import { Results } from './results/results.ts';
import { GuardedStore } from './results/store.ts';
import { Semaphore } from './semaphore.ts';
import { MediaService } from './serve-media.ts';

/** Part of the memory for originals that one may take: a large original would evict all avatars. */
const MAX_ORIGINAL_SHARE = 1 / 8;

/** Adapters of the pipeline's ports. */
export interface MediaAdapters {
  readonly origin: Source;
  readonly observer: SourceObserver | undefined;
  /** `undefined`: nothing can be blocked. */
  readonly blocks: BlockGuard | undefined;
  /** `undefined`: external media are not served. */
  readonly external: ExternalMedia | undefined;
  readonly resultStore: ResultStore | undefined;
  readonly renderer: Renderer;
  /** `undefined`: there is no CDN in front that takes purges. */
  readonly edge: EdgePurger | undefined;
  readonly meter: Meter;
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly log: Log;
}

/** Parts of the pipeline that other parts of the service use. */
export type MediaPipeline = ReturnType<typeof createMediaPipeline>;

/** Creates the pipeline, with the caches that its stages share. */
export function createMediaPipeline(config: Config, adapters: MediaAdapters) {
  const { external, resultStore, renderer, meter, clock, wallClock, log } = adapters;
  const { originLimits: limits, renderLimits } = config;
  const memories = {
    results: new MemoryCache<MediaResult>({ maxBytes: config.cache.maxBytes }),
    originals: new MemoryCache<CachedOriginal>({
      maxBytes: config.cache.originalBytes,
      maxShare: MAX_ORIGINAL_SHARE,
    }),
  };
  const refusedForMs = config.http.maxAgeSeconds.refused * 1000;
  const records = new OriginalRecords({ ...config.versions, refusedForMs }, clock);
  const store = resultStore && new GuardedStore({ store: resultStore, clock, log, meter });
  const release = releaseWithEffort(renderLimits.webpEffort);
  const results = new Results({
    cache: memories.results,
    store,
    meter,
    release,
  });
  const admission = new Admission(renderer, config.admission, clock, meter);
  const originalsBudget = new MemoryBudget(config.originalsMemoryBytes);
  const originReads = new Semaphore(config.originReads);
  const originStreams = new Semaphore(config.originStreams);
  const storage = createStorageBackend(
    adapters.origin,
    limits,
    { reads: originReads, streams: originStreams },
    adapters.observer,
  );
  const sites =
    external &&
    createSiteBackend(
      external,
      limits.maxOriginalBytes,
      new Semaphore({ ...config.originStreams, slots: external.limits.maxStreams }),
    );
  const originals = new Originals({
    storage,
    sites,
    records,
    budget: originalsBudget,
    cache: memories.originals,
    keepsDigests: adapters.blocks !== undefined,
    maxRangeBytes: config.video.maxReadBytes,
    clock,
    meter,
  });
  const rates = config.rates && new Rates(config.rates, { clock, wallClock, log });
  const admitted = new AdmittedRenderer({ admission, records, limits: renderLimits, renderer });
  const media = new MediaService({
    results,
    records,
    originals,
    renderer: admitted,
    limits: renderLimits,
    clock,
    blocks: adapters.blocks,
    rates,
  });
  return {
    release,
    media,
    passthrough: new PassthroughService({
      ...{ storage, sites, records, originals },
      ...{ blocks: adapters.blocks, budget: originalsBudget },
    }),
    metadata: new MetadataService({
      ...{ originals, records, store, renderer: admitted, limits: renderLimits, clock, release },
      maxOriginalBytes: limits.maxOriginalBytes,
      maxHashedBytes: config.maxHashedBytes,
    }),
    purger: new Purger({ records, originals, results, store, edge: adapters.edge }),
    records,
    /** For the explorer. */
    originals,
    renderer: admitted,
    storage,
    store,
    /** The following are read by gauges. */
    memories,
    admission,
    rates,
    originalsBudget,
    originReads,
    originStreams,
  };
}
