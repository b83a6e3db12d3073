import type { Config } from '../config/config.ts';
import { releaseWithEffort } from '../contract/pipeline-release.ts';
import { MediaMaker } from './make-media.ts';
import { MemoryCache } from './memory-cache.ts';
import type { Meter } from './meter.ts';
import { MemoryBudget } from './originals/memory-budget.ts';
import { MetadataCache } from './originals/metadata-cache.ts';
import { Originals } from './originals/originals.ts';
import { PassthroughService } from './originals/passthrough.ts';
import { SitePassthrough } from './originals/site-passthrough.ts';
import type { ExternalMedia } from './originals/sites.ts';
import type {
  CachedOriginal,
  Clock,
  Log,
  MediaResult,
  Origin,
  Renderer,
  ResultStore,
} from './ports.ts';
import { Rates } from './rates.ts';
import { Admission, type SlotSource } from './render/admission.ts';
import { AdmittedRenderer } from './render/admitted-renderer.ts';
import { GuardedStore } from './results/guarded-store.ts';
import { NegativeCache } from './results/negative-cache.ts';
import { Purger } from './results/purger.ts';
import { Results } from './results/results.ts';
import { Semaphore } from './semaphore.ts';
import { MediaService } from './serve-media.ts';

/** Part of the memory for originals that one may take: a large one would drive out all avatars. */
const MAX_ORIGINAL_SHARE = 1 / 8;

/** What the pipeline stands on. */
export interface MediaAdapters {
  readonly origin: Origin;
  /** `undefined`: nothing of other sites is served. */
  readonly external: ExternalMedia | undefined;
  readonly resultStore: ResultStore | undefined;
  readonly renderer: Renderer;
  /** The processes of the renderer. */
  readonly slotSource: SlotSource;
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
  const { origin, external, resultStore, renderer, slotSource, meter, clock, wallClock, log } =
    adapters;
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
  const negativeCache = new NegativeCache(config.http.maxAgeSeconds.refused * 1000, clock);
  const metadata = new MetadataCache(config.versions, clock);
  const store = resultStore && new GuardedStore({ store: resultStore, clock, log, meter });
  const results = new Results({
    cache: memories.results,
    store,
    meter,
    release: releaseWithEffort(renderLimits.webpEffort),
  });
  const admission = new Admission(slotSource, config.admission, clock, meter);
  const originalsBudget = new MemoryBudget(config.originalsMemoryBytes);
  const originReads = new Semaphore(config.originReads);
  const originStreams = new Semaphore(config.originStreams);
  const originals = new Originals({
    access: { origin, limits, semaphore: originReads },
    external,
    budget: originalsBudget,
    metadata,
    cache: memories.originals,
    clock,
    meter,
  });
  const rates = config.rates && new Rates(config.rates, { clock, wallClock, log });
  const admitted = new AdmittedRenderer({
    renderer,
    admission,
    negativeCache,
    limits: renderLimits,
  });
  const media = new MediaService({
    results,
    negativeCache,
    metadata,
    originals,
    renderer: admitted,
    maker: new MediaMaker({
      results,
      negativeCache,
      renderer: admitted,
      limits: renderLimits,
      remembersCosts: rates !== undefined,
    }),
    rates,
  });
  const siteMedia =
    external && new SitePassthrough({ external, metadata, clock, waiting: config.originStreams });
  return {
    media,
    passthrough: new PassthroughService({ origin, limits, semaphore: originStreams }, siteMedia),
    purger: new Purger({ media, originals, siteMedia, negativeCache, results, store }),
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
