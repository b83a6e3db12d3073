import type { Config } from '../config/config.ts';
import { releaseWithEffort } from '../contract/image-formats.ts';
import { MemoryCache } from './memory-cache.ts';
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
import { Rates } from './rates.ts';
import { Admission } from './render/admission.ts';
import { AdmittedRenderer } from './render/admitted-renderer.ts';
import { Purger } from './results/purger.ts';
import { Results } from './results/results.ts';
import { GuardedStore } from './results/store.ts';
import { Semaphore } from './semaphore.ts';
import { MediaService } from './serve-media.ts';

/** Part of the memory for originals that one may take: a large one would drive out all avatars. */
const MAX_ORIGINAL_SHARE = 1 / 8;

/** Adapters that the pipeline stands on. */
export interface MediaAdapters {
  readonly origin: Source;
  /** Observer of the origin; `undefined`: nobody watches. */
  readonly observer: SourceObserver | undefined;
  /** `undefined`: nothing of other sites is served. */
  readonly external: ExternalMedia | undefined;
  readonly resultStore: ResultStore | undefined;
  readonly renderer: Renderer;
  readonly meter: Meter;
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly log: Log;
}

/** The pipeline, put together: what serves media, and what purges them. */
export type MediaPipeline = ReturnType<typeof createMediaPipeline>;

/** Puts the pipeline together, with the caches that its stages share. */
export function createMediaPipeline(config: Config, adapters: MediaAdapters) {
  const { external, resultStore, renderer, meter, clock, wallClock, log } = adapters;
  const { originLimits: limits, renderLimits } = config;
  const memories = {
    results: new MemoryCache<MediaResult>({
      maxBytes: config.cache.maxBytes,
      bytesOf: ({ body }) => body,
    }),
    originals: new MemoryCache<CachedOriginal>({
      maxBytes: config.cache.originalBytes,
      maxShare: MAX_ORIGINAL_SHARE,
      bytesOf: ({ bytes }) => bytes,
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
    clock,
    meter,
  });
  const rates = config.rates && new Rates(config.rates, { clock, wallClock, log });
  const media = new MediaService({
    results,
    records,
    originals,
    renderer: new AdmittedRenderer({ admission, records, limits: renderLimits }),
    limits: renderLimits,
    clock,
    rates,
  });
  return {
    release,
    media,
    passthrough: new PassthroughService({ storage, sites, records }),
    purger: new Purger({ records, originals, results, store }),
    /** For those who read originals beside clients. */
    originals,
    storage,
    store,
    /** For gauges of how full they are. */
    memories,
    admission,
    rates,
    originalsBudget,
    originReads,
    originStreams,
  };
}
