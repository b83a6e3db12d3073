import type { Config } from '../config/config.ts';
import { MediaService } from './media-service.ts';
import type { Meter } from './meter.ts';
import { OriginalVersions } from './originals/freshness.ts';
import { MemoryBudget } from './originals/memory-budget.ts';
import { Originals } from './originals/originals.ts';
import { PassthroughService } from './originals/passthrough.ts';
import type {
  BoundedCache,
  CacheOptions,
  Clock,
  KeptOriginal,
  Log,
  MediaResult,
  Origin,
  Renderer,
  ResultStore,
} from './ports.ts';
import { Admission } from './render/admission.ts';
import { Transformer } from './render/transformer.ts';
import { NegativeCache } from './results/negative-cache.ts';
import { Purger } from './results/purger.ts';
import { Results } from './results/results.ts';
import { Semaphore } from './semaphore.ts';

/** Part of the memory for originals that one may take: a large one would drive out all avatars. */
const MAX_ORIGINAL_SHARE = 1 / 8;

/** What the rooms stand on. */
export interface MediaAdapters {
  readonly createCache: <Value extends object>(options: CacheOptions<Value>) => BoundedCache<Value>;
  readonly origin: Origin;
  readonly resultStore: ResultStore | undefined;
  readonly renderer: Renderer;
  readonly meter: Meter;
  readonly clock: Clock;
  readonly log: Log;
}

/** The pipeline, put together: who serves media, and who makes it forget some. */
export interface MediaPipeline {
  readonly media: MediaService;
  readonly passthrough: PassthroughService;
  readonly purger: Purger;
  readonly results: Results;
  /** For whoever watches how full they are. */
  readonly memories: {
    readonly results: BoundedCache<MediaResult>;
    readonly originals: BoundedCache<KeptOriginal>;
  };
  readonly admission: Admission;
  readonly originalsBudget: MemoryBudget;
  readonly originReads: Semaphore;
  readonly originStreams: Semaphore;
}

/** Puts the rooms of the pipeline together, with the memories that they share. */
export function createMediaPipeline(config: Config, adapters: MediaAdapters): MediaPipeline {
  const { createCache, origin, resultStore, renderer, meter, clock, log } = adapters;
  const { originLimits } = config;
  const refusals = new NegativeCache(config.http.maxAgeSeconds.refused * 1000, clock);
  const originals = createCache<KeptOriginal>({
    maxBytes: config.cache.originalBytes,
    maxShare: MAX_ORIGINAL_SHARE,
    bytesOf: ({ bytes }) => bytes,
  });
  const versions = new OriginalVersions(config.versions, clock);
  const answers = createCache<MediaResult>({
    maxBytes: config.cache.maxBytes,
    bytesOf: ({ body }) => body,
  });
  const results = new Results({ cache: answers, store: resultStore, clock, log, meter });
  const admission = new Admission(config.admission, clock, meter);
  const originalsBudget = new MemoryBudget(config.originalsMemoryBytes);
  const originReads = new Semaphore(config.originReads);
  const originStreams = new Semaphore(config.originStreams);
  const media = new MediaService({
    results,
    refusals,
    versions,
    originals: new Originals({
      source: {
        access: { origin, limits: originLimits, gate: originReads },
        budget: originalsBudget,
      },
      versions,
      cache: originals,
      clock,
      meter,
    }),
    transformer: new Transformer({
      renderer,
      admission,
      refusals,
      limits: config.renderLimits,
    }),
    meter,
  });
  const passthrough = new PassthroughService({
    origin,
    limits: originLimits,
    gate: originStreams,
  });
  return {
    media,
    passthrough,
    purger: new Purger({ versions, originals, refusals, results }),
    results,
    memories: { results: answers, originals },
    admission,
    originalsBudget,
    originReads,
    originStreams,
  };
}
