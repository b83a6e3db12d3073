import type { Config } from '../config/config.ts';
import { releaseWithEffort } from '../contract/image-formats.ts';
import type { BlockGuard } from './blocks/block-guard.ts';
import type { CdnPurger } from './cdn/cdn-purger.ts';
import { MemoryCache } from './memory-cache.ts';
import { createMetadataService } from './metadata/metadata.ts';
import type { Tools } from './meter.ts';
import {
  createSiteBackend,
  createStorageBackend,
  type ExternalMedia,
  type SourceObserver,
} from './originals/backend.ts';
import { FactStore } from './originals/fact-store.ts';
import { MemoryBudget } from './originals/memory-budget.ts';
import { Originals } from './originals/originals.ts';
import { PassthroughService } from './originals/passthrough.ts';
import { OriginalRecords } from './originals/records.ts';
import type { CachedOriginal, MediaResult, Renderer, ResultStore, Source } from './ports.ts';
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

interface MediaAdapters extends Tools {
  readonly origin: Source;
  readonly observer: SourceObserver | undefined;
  /** `undefined`: nothing can be blocked. */
  readonly blocks: BlockGuard | undefined;
  /** `undefined`: external media are not served. */
  readonly external: ExternalMedia | undefined;
  /** Uploads that the platform has not accepted yet, and media that arrive with internal requests. */
  readonly uploads: Source | undefined;
  readonly inline: Source | undefined;
  readonly resultStore: ResultStore | undefined;
  readonly renderer: Renderer;
  /** `undefined`: there is no CDN in front that takes purges. */
  readonly cdn: CdnPurger | undefined;
}

export type MediaPipeline = ReturnType<typeof createMediaPipeline>;

/** Creates the pipeline, with the caches that its stages share. */
export function createMediaPipeline(config: Config, adapters: MediaAdapters) {
  const { external, resultStore, renderer, meter, clock } = adapters;
  const { originLimits: limits, renderLimits } = config;
  const memories = {
    results: new MemoryCache<MediaResult>(config.cache.maxBytes),
    originals: new MemoryCache<CachedOriginal>(config.cache.originalBytes, MAX_ORIGINAL_SHARE),
  };
  const records = new OriginalRecords(config.versions, clock);
  const store = resultStore && new GuardedStore(resultStore, adapters);
  const closing = new AbortController();
  const release = releaseWithEffort(renderLimits.webpEffort);
  const facts = new FactStore(records, store, release);
  const results = new Results({
    cache: memories.results,
    store,
    meter,
    release,
  });
  const admission = new Admission(renderer, config.admission, adapters);
  const originalsBudget = new MemoryBudget(config.originalsMemoryBytes);
  const originReads = new Semaphore(config.originReads);
  const originStreams = new Semaphore(config.originStreams);
  const semaphores = { reads: originReads, streams: originStreams };
  const { observer } = adapters;
  const storage = createStorageBackend(adapters.origin, limits, semaphores, { observer });
  const openBeyond = (source: Source | undefined) =>
    source && createStorageBackend(source, limits, semaphores, { remembers: false });
  const sites =
    external &&
    createSiteBackend(
      external,
      limits.maxOriginalBytes,
      new Semaphore({ ...config.originStreams, slots: external.limits.maxStreams }),
    );
  const rates = config.rates && new Rates(config.rates, adapters);
  const { blocks } = adapters;
  const originals = new Originals({
    storage,
    sites,
    uploads: openBeyond(adapters.uploads),
    inline: openBeyond(adapters.inline),
    records,
    facts,
    blocks,
    cache: memories.originals,
    budget: originalsBudget,
    maxRangeBytes: config.video.maxReadBytes,
    closing: closing.signal,
    clock,
    meter,
  });
  const scheduler = new AdmittedRenderer({ admission, renderer, limits: renderLimits, records });
  const passthrough = new PassthroughService({
    storage,
    sites,
    records,
    facts,
    originals,
    blocks,
    budget: originalsBudget,
  });
  const shared = { originals, renderer: scheduler, limits: renderLimits, clock };
  return {
    originals,
    media: new MediaService({ ...shared, results, records, rates, blocks, passthrough }),
    metadata: createMetadataService({
      ...shared,
      facts,
      maxHashedBytes: config.maxHashedBytes,
      maxOriginalBytes: limits.maxOriginalBytes,
    }),
    release,
    purger: new Purger({ records, originals, results, store, cdn: adapters.cdn }),
    records,
    facts,
    /** Ends the work in the background. */
    close: () => closing.abort(),
    storage,
    store,
    memories,
    admission,
    rates,
    originalsBudget,
    originReads,
    originStreams,
  };
}
