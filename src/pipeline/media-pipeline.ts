import type { Config } from '../config/config.ts';
import { releaseWithEffort } from '../contract/image-formats.ts';
import { MemoryCache } from './memory-cache.ts';
import { createMetadataService } from './metadata/metadata.ts';
import type { Tools } from './meter.ts';
import {
  createSiteBackend,
  createStorageBackend,
  type ExternalMedia,
  type SourceObserver,
} from './originals/backend.ts';
import { DetailStore } from './originals/detail-store.ts';
import { MemoryBudget } from './originals/memory-budget.ts';
import { type OriginalServices, Originals } from './originals/originals.ts';
import { OriginalRecords } from './originals/records.ts';
import type { CachedOriginal, MediaResult, Renderer, ResultStore, Source } from './ports.ts';
import { Rates } from './rates.ts';
import { Admission } from './render/admission.ts';
import { Refusals } from './render/refusals.ts';
import { createPurger } from './results/purger.ts';
import { GuardedStore } from './results/store.ts';
import { Semaphore } from './semaphore.ts';
import { MediaService } from './serve-media.ts';
import type { Services } from './services.ts';

/** Maximum fraction of the memory for originals that one may occupy; otherwise a large one would evict all avatars. */
const MAX_ORIGINAL_FRACTION = 1 / 8;

interface Sources {
  readonly origin: Source;
  readonly external: ExternalMedia | undefined;
  /** Uploads that the platform has not accepted yet. */
  readonly uploads: Source | undefined;
  readonly inline: Source | undefined;
}

export type MediaPipeline = ReturnType<typeof createMediaPipeline>;

/**
 * Creates the pipeline, with the state that its stages share.
 *
 * @param observer counts reads of the storage
 * @param resultStore omit to lose results at a restart
 */
export function createMediaPipeline(
  config: Config,
  { origin, external, uploads, inline }: Sources,
  observer: SourceObserver,
  renderer: Renderer,
  resultStore: ResultStore | undefined,
  outer: Pick<Services, 'blocks' | 'cdn'> & Tools,
) {
  const { originLimits, renderLimits } = config;
  const records = new OriginalRecords(config.records, outer.clock);
  const store = resultStore && new GuardedStore(resultStore, outer);
  const release = releaseWithEffort(renderLimits.webpEffort);
  const closing = new AbortController();
  const originReads = new Semaphore(config.originReads);
  const originStreams = new Semaphore(config.originStreams);
  const semaphores = { reads: originReads, streams: originStreams };
  const openUnremembered = (source: Source | undefined) =>
    source && createStorageBackend(source, originLimits, semaphores, { remembers: false });
  const siteStreams = { ...config.originStreams, slots: external?.limits.maxStreams ?? 0 };
  const services: Services = {
    ...outer,
    storage: createStorageBackend(origin, originLimits, semaphores, { observer }),
    sites:
      external &&
      createSiteBackend(external, originLimits.maxOriginalBytes, new Semaphore(siteStreams)),
    uploads: openUnremembered(uploads),
    inline: openUnremembered(inline),
    records,
    refusals: new Refusals(outer.clock),
    details: new DetailStore(records, store, release),
    caches: {
      results: new MemoryCache<MediaResult>(config.cache.maxBytes),
      originals: new MemoryCache<CachedOriginal>(config.cache.originalBytes, MAX_ORIGINAL_FRACTION),
    },
    store,
    originalsBudget: new MemoryBudget(config.originalsMemoryBytes),
    admission: new Admission(renderer, config.admission, outer),
    renderer,
    renderLimits,
    rates: config.rates && new Rates(config.rates, outer),
    release,
    maxRangeBytes: config.video.maxReadBytes,
    maxHashedBytes: config.maxHashedBytes,
    closing: closing.signal,
  };
  const pipeline: OriginalServices = { ...services, originals: new Originals(services) };
  return {
    ...pipeline,
    media: new MediaService(pipeline),
    metadata: createMetadataService(pipeline),
    purger: createPurger(pipeline),
    originReads,
    originStreams,
    /** Stops background work. */
    close: () => closing.abort(),
  };
}
