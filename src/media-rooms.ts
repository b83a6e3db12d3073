import { MemoryCache } from './adapters/memory-cache.ts';
import type { Config } from './config.ts';
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
  Meter,
  Origin,
  Renderer,
  ResultStore,
} from './pipeline/ports.ts';
import { Purger } from './pipeline/purger.ts';
import { RefusalMemory } from './pipeline/refusal-memory.ts';
import { Results } from './pipeline/results.ts';
import { Transformer } from './pipeline/transformer.ts';
import { VerbatimService } from './pipeline/verbatim-service.ts';

/** Part of the memory for originals that one may take: a large one would drive out all avatars. */
const MAX_ORIGINAL_SHARE = 1 / 8;

/** What the rooms stand on. */
export interface MediaAdapters {
  readonly origin: Origin;
  readonly resultStore: ResultStore | undefined;
  readonly renderer: Renderer;
  readonly meter: Meter;
  readonly clock: Clock;
  readonly log: Log;
}

/** The pipeline, put together: who serves media, and who makes it forget some. */
export interface MediaRooms {
  readonly media: MediaService;
  readonly verbatim: VerbatimService;
  readonly purger: Purger;
  readonly results: Results;
}

/** Puts the rooms of the pipeline together, with the memories that they share. */
export function createMediaRooms(config: Config, adapters: MediaAdapters): MediaRooms {
  const { origin, resultStore, renderer, meter, clock, log } = adapters;
  const { originLimits } = config;
  const refusals = new RefusalMemory(config.http.maxAgeSeconds.refused * 1000, clock);
  const originals = new MemoryCache<KeptOriginal>({
    maxBytes: config.cache.originalBytes,
    maxShare: MAX_ORIGINAL_SHARE,
    bytesOf: ({ bytes }) => bytes,
  });
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
      cache: originals,
      clock,
    }),
    transformer: new Transformer({
      renderer,
      admission: new Admission(config.admission, clock, meter),
      refusals,
      limits: config.renderLimits,
    }),
  });
  const verbatim = new VerbatimService({
    origin,
    limits: originLimits,
    gate: new Gate(config.originStreams),
  });
  return {
    media,
    verbatim,
    purger: new Purger({ versions, originals, refusals, results }),
    results,
  };
}
