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
import { Digests } from './originals/digests.ts';
import { MemoryBudget } from './originals/memory-budget.ts';
import type { FlightParts } from './originals/original-flight.ts';
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

/** Period for which a 415 or 422 is remembered, whatever HTTP caches may keep: its work would be repeated. */
const REFUSED_FOR_MS = 5 * 60_000;

interface MediaAdapters {
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

/** Services for the originals of one source. */
export interface MediaServices {
  readonly originals: Originals;
  readonly renderer: AdmittedRenderer;
  readonly media: MediaService;
  readonly metadata: MetadataService;
}

export type MediaPipeline = ReturnType<typeof createMediaPipeline>;

/** Originals of one source, and what services remember of them. */
interface KeptParts
  extends Pick<FlightParts, 'storage' | 'sites' | 'records' | 'digests' | 'cache'> {
  readonly results: Results;
  readonly store: GuardedStore | undefined;
  readonly rates: Rates | undefined;
}

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
  const records = new OriginalRecords({ ...config.versions, refusedForMs: REFUSED_FOR_MS }, clock);
  const store = resultStore && new GuardedStore({ store: resultStore, clock, log, meter });
  const closing = new AbortController();
  const digests = new Digests({ records, store, closing: closing.signal });
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
  const rates = config.rates && new Rates(config.rates, { clock, wallClock, log });
  const { blocks } = adapters;
  const shared = { clock, meter, release, limits: renderLimits, blocks };
  const createServices = (kept: KeptParts): MediaServices => {
    const { records, digests, store } = kept;
    const originals = new Originals({
      ...{ ...shared, ...kept, budget: originalsBudget, maxRangeBytes: config.video.maxReadBytes },
    });
    const admitted = new AdmittedRenderer({ admission, renderer, ...shared, records });
    const parts = { ...shared, originals, records, renderer: admitted };
    const passthrough = new PassthroughService({ ...parts, ...kept, budget: originalsBudget });
    return {
      originals,
      renderer: admitted,
      media: new MediaService({
        ...parts,
        results: kept.results,
        rates: kept.rates,
        passthrough,
      }),
      metadata: new MetadataService({
        ...{ ...parts, store, digests, maxHashedBytes: config.maxHashedBytes },
        maxOriginalBytes: limits.maxOriginalBytes,
      }),
    };
  };
  const services = createServices({
    ...{ storage, sites, records, digests, results, store, rates, cache: memories.originals },
  });
  const { originals } = services;
  return {
    ...services,
    release,
    purger: new Purger({ records, originals, results, store, edge: adapters.edge }),
    records,
    digests,
    /** Creates the services for originals of another source, of which nothing is remembered. */
    openBeside: (source: Source): MediaServices => {
      const records = new OriginalRecords({ freshForMs: 0, goneForMs: 0, refusedForMs: 0 }, clock);
      return createServices({
        storage: createStorageBackend(source, limits, {
          reads: originReads,
          streams: originStreams,
        }),
        sites: undefined,
        records,
        digests: new Digests({ records, store: undefined, closing: closing.signal }),
        results: new Results({
          cache: new MemoryCache({ maxBytes: 0 }),
          store: undefined,
          meter,
          release,
        }),
        cache: new MemoryCache({ maxBytes: 0 }),
        store: undefined,
        rates: undefined,
      });
    },
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
