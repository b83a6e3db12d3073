import { bottlenecks } from '../contract/errors.ts';
import { type ResourceName, resourceNames } from '../contract/resources.ts';
import { signatureVerdicts } from '../contract/signing/attachment-signature.ts';
import type { CacheUse, TimedStage } from './cache-outcome.ts';
import { type Lane, lanes } from './ports.ts';
import { siteFailureReasons } from './site-failure.ts';

/** Memories: results in memory, originals in memory, the store that outlives the process. */
const memories = ['results', 'originals', 'store'] as const;

/** Outcomes of a read from the origin; stopped: no request waited for it any more. */
export const originOutcomes = ['found', 'missing', 'failed', 'timeout', 'stopped'] as const;
export type OriginOutcome = (typeof originOutcomes)[number];

/**
 * Outcomes of a fetch from another site: the whole or a part is coming; the known state still holds; it is missing; why
 * it was refused or has failed; too many waited for a connection; no request waited for it any more.
 */
export const fetchOutcomes = [
  'fetched',
  'revalidated',
  'missing',
  ...siteFailureReasons,
  'overloaded',
  'stopped',
] as const;
export type FetchOutcome = (typeof fetchOutcomes)[number];

/** A counter: its name and help, and the values of its label, which are there from the start. */
export interface CounterRow {
  readonly name: string;
  readonly help: string;
  /** `undefined`: it is one number. */
  readonly label?: string;
  readonly values: readonly string[];
}

/** Everything that is counted as it happens, but for responses, whose classes are too many to list. */
export const counters = {
  cacheHits: {
    name: 'darkroom_cache_hits_total',
    help: 'Lookups in a cache that have found an entry, current or not.',
    label: 'cache',
    values: memories,
  },
  cacheMisses: {
    name: 'darkroom_cache_misses_total',
    help: 'Lookups in a cache that have found nothing.',
    label: 'cache',
    values: memories,
  },
  refusals: {
    name: 'darkroom_refusals_total',
    help: 'Requests that were rejected (503), by the bottleneck.',
    label: 'reason',
    values: bottlenecks,
  },
  rateLimited: {
    name: 'darkroom_rate_limited_total',
    help: 'Requests for renders of clients that have used up their share (429), by resource.',
    label: 'resource',
    values: [...resourceNames, 'upload', 'none'],
  },
  signatures: {
    name: 'darkroom_attachment_signatures_total',
    help: 'Requests for attachments by the verdict on the signature of the URL, where ATTACHMENT_SIGNING is report or enforce.',
    label: 'verdict',
    values: signatureVerdicts,
  },
  originReads: {
    name: 'darkroom_origin_reads_total',
    help: 'Reads from the origin by outcome, probes included.',
    label: 'outcome',
    values: originOutcomes,
  },
  originReadBytes: {
    name: 'darkroom_origin_read_bytes_total',
    help: 'Bytes of bodies that the origin has sent.',
    values: ['all'],
  },
  originBrokenBodies: {
    name: 'darkroom_origin_broken_bodies_total',
    help: 'Bodies that the origin has begun to send, and not ended.',
    values: ['all'],
  },
  externalFetches: {
    name: 'darkroom_external_fetches_total',
    help: 'Fetches from other sites by outcome, or why they were refused.',
    label: 'outcome',
    values: fetchOutcomes,
  },
  uploadedBytes: {
    name: 'darkroom_upload_received_bytes_total',
    help: 'Bytes of uploads that have come, stored in the end or not.',
    values: ['all'],
  },
} as const satisfies Readonly<Record<string, CounterRow>>;

type Counters = typeof counters;

/** Stages that the time of a request goes into; the last one is sending its body. */
export const stages = ['store', 'origin', 'queue', 'render', 'send'] as const satisfies readonly (
  | TimedStage
  | 'send'
)[];
export type Stage = (typeof stages)[number];

/** A histogram of durations: its name and help, the values of its label, and the upper bounds of its buckets. */
interface HistogramRow extends Required<CounterRow> {
  readonly bucketsSeconds: readonly number[];
}

/** Everything that is timed. */
export const histograms = {
  queueWait: {
    name: 'darkroom_queue_wait_seconds',
    help: 'Waits of renders for a CPU slot, 0 where one was free.',
    label: 'lane',
    values: lanes,
    // The longest wait that is allowed is 5 by default.
    bucketsSeconds: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5],
  },
  stage: {
    name: 'darkroom_stage_seconds',
    help: 'Time of a request in a stage that it entered; plain hits in memory are not timed.',
    label: 'stage',
    values: stages,
    // From a lookup in memory to a large file sent to a slow client.
    bucketsSeconds: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60],
  },
} as const satisfies Readonly<Record<string, HistogramRow>>;

/** Class of a response; each member has few values, and none of them is a client's. */
export interface ResponseClass {
  /** `none`: the path is not in the contract. */
  readonly resource: ResourceName | 'upload' | 'none';
  /** 499, as nginx has it, where the client has gone before there was one. */
  readonly status: number;
  readonly cache: CacheUse;
}

/** Responses of one class; the code that sends them adds to it. */
export interface ResponseCount {
  responses: number;
  /** Bytes of bodies, as far as they were handed over to the system. */
  bodyBytes: number;
}

/** Counts what happens, for operators. */
export interface Meter {
  /** Adds to a counter. */
  count<Name extends keyof Counters>(
    name: Name,
    value: Counters[Name]['values'][number],
    by?: number,
  ): void;
  time(name: 'queueWait', lane: Lane, durationMs: number): void;
  time(name: 'stage', stage: Stage, durationMs: number): void;
  /** Returns the same object each time for one class. */
  countOf(responseClass: ResponseClass): ResponseCount;
}
