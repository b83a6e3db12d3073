import { MemoryCache } from './adapters/memory-cache.ts';
import { Admission } from './pipeline/admission.ts';
import { Gate } from './pipeline/gate.ts';
import { MediaService } from './pipeline/media-service.ts';
import type { Meter } from './pipeline/meter.ts';
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
import type { Config } from './settings/config.ts';

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
  /** For whoever watches how full they are. */
  readonly memories: {
    readonly results: MemoryCache<MediaResult>;
    readonly originals: MemoryCache<KeptOriginal>;
  };
  readonly admission: Admission;
  readonly originalsBudget: OriginalsBudget;
  readonly originReads: Gate;
  readonly originStreams: Gate;
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
  const answers = new MemoryCache<MediaResult>({
    maxBytes: config.cache.maxBytes,
    bytesOf: ({ body }) => body,
  });
  const results = new Results({ cache: answers, store: resultStore, clock, log, meter });
  const admission = new Admission(config.admission, clock, meter);
  const originalsBudget = new OriginalsBudget(config.originalsMemoryBytes);
  const originReads = new Gate(config.originReads);
  const originStreams = new Gate(config.originStreams);
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
  const verbatim = new VerbatimService({
    origin,
    limits: originLimits,
    gate: originStreams,
  });
  return {
    media,
    verbatim,
    purger: new Purger({ versions, originals, refusals, results }),
    results,
    memories: { results: answers, originals },
    admission,
    originalsBudget,
    originReads,
    originStreams,
  };
}
