import { bottlenecks } from '../contract/errors.ts';
import { metadataOutcomes } from '../contract/metadata.ts';
import { platformResourceNames, type ResourceName, resourceNames } from '../contract/resources.ts';
import { signatureVerdicts } from '../contract/signing/attachment-signature.ts';
import { type Clock, type Log, lanes } from './ports.ts';
import { type CacheUse, stages } from './request-trace.ts';
import { siteFailureReasons } from './site-failure.ts';

/** Caches: results in memory, originals in memory, the store. */
const caches = ['results', 'originals', 'store'] as const;

/** Outcomes of a read from the origin. `stopped`: no request waited for it any more. */
export const originOutcomes = ['found', 'missing', 'failed', 'timeout', 'stopped'] as const;
export type OriginOutcome = (typeof originOutcomes)[number];

/**
 * Outcomes of a fetch from another site: response, confirmation of the known state, missing; reasons of refusals and
 * failures; too many fetches waited for a connection; no request waited for it any more.
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

/** Outcomes of a call of the CDN's API: accepted; too many calls; rejected or failed; no response in time. */
export const cdnCallOutcomes = ['taken', 'limited', 'failed', 'timeout'] as const;
export type CdnCallOutcome = (typeof cdnCallOutcomes)[number];

/** A metric of events: its name and help, and its label with all values, which exist from the start. */
export interface MetricRow {
  readonly name: string;
  readonly help: string;
  /** One label; without it, the metric is one number, and its value is `all`. */
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  /** Upper bounds of the buckets of a histogram of durations; a row without them is a counter. */
  readonly bucketsSeconds?: readonly number[];
}

/** Metrics of events, except responses, whose classes are too many to list. */
export const metrics = {
  cacheHits: {
    name: 'darkroom_cache_hits_total',
    help: 'Lookups in a cache that have found an entry, current or not.',
    labels: { cache: caches },
  },
  cacheMisses: {
    name: 'darkroom_cache_misses_total',
    help: 'Lookups in a cache that have found nothing.',
    labels: { cache: caches },
  },
  refusals: {
    name: 'darkroom_refusals_total',
    help: 'Requests that were rejected (503), by the bottleneck.',
    labels: { reason: bottlenecks },
  },
  rateLimited: {
    name: 'darkroom_rate_limited_total',
    help: 'Requests for renders of clients that have used up their share (429), by resource.',
    labels: { resource: [...resourceNames, ...platformResourceNames, 'upload', 'none'] },
  },
  signatures: {
    name: 'darkroom_attachment_signatures_total',
    help: 'Requests for attachments by the verdict on the signature of the URL, where ATTACHMENT_SIGNING is report or enforce.',
    labels: { verdict: signatureVerdicts },
  },
  originReads: {
    name: 'darkroom_origin_reads_total',
    help: 'Reads from the origin by outcome, probes included.',
    labels: { outcome: originOutcomes },
  },
  originReadBytes: {
    name: 'darkroom_origin_read_bytes_total',
    help: 'Bytes of bodies that the origin has sent.',
  },
  originBrokenBodies: {
    name: 'darkroom_origin_broken_bodies_total',
    help: 'Bodies that the origin has begun to send, and not ended.',
  },
  externalFetches: {
    name: 'darkroom_external_fetches_total',
    help: 'Fetches from other sites by outcome, or why they were refused.',
    labels: { outcome: fetchOutcomes },
  },
  uploadedBytes: {
    name: 'darkroom_upload_received_bytes_total',
    help: 'Bytes of uploads that have come, stored in the end or not.',
  },
  metadataRemovals: {
    name: 'darkroom_upload_metadata_total',
    help: 'Uploads whose metadata had to be removed, by outcome; refused: they could not be cleaned as they streamed.',
    labels: { outcome: [...metadataOutcomes, 'refused'] },
  },
  cdnCalls: {
    name: 'darkroom_edge_calls_total',
    help: 'Calls of the API of the CDN in front (EDGE), by outcome; what is not taken is sent again.',
    labels: { outcome: cdnCallOutcomes },
  },
  cdnPurges: {
    name: 'darkroom_edge_purges_total',
    help: 'Purges that the CDN in front has taken twice (done), or not at all for a day (failed).',
    labels: { outcome: ['done', 'failed'] },
  },
  queueWait: {
    name: 'darkroom_queue_wait_seconds',
    help: 'Waits of renders for a CPU slot, 0 where one was free.',
    labels: { lane: lanes },
    // The maximum wait is 5 by default.
    bucketsSeconds: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5],
  },
  stage: {
    name: 'darkroom_stage_seconds',
    help: 'Time of a request in a stage that it entered; plain hits in memory are not timed.',
    labels: { stage: stages },
    // From a lookup in memory to a large file for a slow client.
    bucketsSeconds: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60],
  },
} as const satisfies Readonly<Record<string, MetricRow>>;

type Metrics = typeof metrics;
type Timed = 'queueWait' | 'stage';

/** Values of the label of a metric. */
type LabelValue<Name extends keyof Metrics> = Metrics[Name] extends {
  readonly labels: Readonly<Record<string, readonly (infer Value extends string)[]>>;
}
  ? Value
  : 'all';

/** Class of a response. Each member has few values, which clients cannot choose. */
export interface ResponseClass {
  /** `none`: the path is not in the contract. */
  readonly resource: ResourceName | 'upload' | 'none';
  /** 499, nginx's status, if the client left before the response. */
  readonly status: number;
  readonly cache: CacheUse;
}

export interface ResponseCount {
  responses: number;
  /** Bytes of bodies that were written to sockets. */
  bodyBytes: number;
}

/** Counts and times events, for operators. */
export interface Meter {
  count<Name extends Exclude<keyof Metrics, Timed>>(
    name: Name,
    value: LabelValue<Name>,
    by?: number,
  ): void;
  time<Name extends Timed>(name: Name, value: LabelValue<Name>, durationMs: number): void;
  /** Returns the same object each time for one class. */
  countOf(responseClass: ResponseClass): ResponseCount;
}

/** Clocks, meter and log of the process. */
export interface Tools {
  readonly clock: Clock;
  /** Returns milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly meter: Meter;
  readonly log: Log;
}
