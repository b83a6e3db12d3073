import { bottlenecks } from '../contract/errors.ts';
import { metadataOutcomes } from '../contract/metadata.ts';
import { platformResourceNames, type ResourceName, resourceNames } from '../contract/resources.ts';
import { signatureVerdicts } from '../contract/signing/attachment-signature.ts';
import { type Clock, type Log, lanes } from './ports.ts';
import { type CacheUse, stages } from './request-trace.ts';
import { siteFailureReasons } from './site-failure.ts';

const caches = ['results', 'originals', 'store'] as const;

/** Outcomes of a read from the origin; `stopped`: no request needed it any more. */
export const originOutcomes = ['found', 'missing', 'failed', 'timeout', 'stopped'] as const;
export type OriginOutcome = (typeof originOutcomes)[number];

/**
 * Outcomes of a fetch from another site. `overloaded`: too many fetches waited for a connection; `stopped`: no request
 * needed it any more.
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

/** Outcomes of a call of the CDN's API; `taken`: accepted, `limited`: too many calls. */
export const cdnCallOutcomes = ['taken', 'limited', 'failed', 'timeout'] as const;
export type CdnCallOutcome = (typeof cdnCallOutcomes)[number];

export interface MetricRow {
  readonly name: string;
  readonly help: string;
  /**
   * The label with all of its values, whose series exist from the start. Omit for a single series, whose value is
   * `all`.
   */
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  /** Upper bounds of the buckets of a histogram. Omit for a counter. */
  readonly bucketsSeconds?: readonly number[];
}

/** Metrics of events, except responses, which have too many classes to list. */
export const metrics = {
  cacheHits: {
    name: 'darkroom_cache_hits_total',
    help: 'Lookups in a cache that found an entry, current or not.',
    labels: { cache: caches },
  },
  cacheMisses: {
    name: 'darkroom_cache_misses_total',
    help: 'Lookups in a cache that found no entry.',
    labels: { cache: caches },
  },
  refusals: {
    name: 'darkroom_refusals_total',
    help: 'Rejected requests (503), by bottleneck.',
    labels: { reason: bottlenecks },
  },
  rateLimited: {
    name: 'darkroom_rate_limited_total',
    help: 'Requests of clients above their rate limit for renders (429), by resource.',
    labels: { resource: [...resourceNames, ...platformResourceNames, 'upload', 'none'] },
  },
  signatures: {
    name: 'darkroom_attachment_signatures_total',
    help: 'Requests for attachments by verdict on the signature, if ATTACHMENT_SIGNING is report or enforce.',
    labels: { verdict: signatureVerdicts },
  },
  originReads: {
    name: 'darkroom_origin_reads_total',
    help: 'Reads from the origin by outcome, probes included.',
    labels: { outcome: originOutcomes },
  },
  originReadBytes: {
    name: 'darkroom_origin_read_bytes_total',
    help: 'Bytes of bodies that the origin sent.',
  },
  originBrokenBodies: {
    name: 'darkroom_origin_broken_bodies_total',
    help: 'Bodies that the origin began to send but did not complete.',
  },
  externalFetches: {
    name: 'darkroom_external_fetches_total',
    help: 'Fetches from other sites by outcome, or by reason of rejection.',
    labels: { outcome: fetchOutcomes },
  },
  uploadedBytes: {
    name: 'darkroom_upload_received_bytes_total',
    help: 'Received bytes of uploads, whether or not they were stored.',
  },
  metadataRemovals: {
    name: 'darkroom_upload_metadata_total',
    help: 'Uploads with removal of metadata, by outcome; refused: the file could not be cleaned as a stream.',
    labels: { outcome: [...metadataOutcomes, 'refused'] },
  },
  cdnCalls: {
    name: 'darkroom_edge_calls_total',
    help: 'Calls of the CDN API (EDGE), by outcome; all except taken (accepted) are retried.',
    labels: { outcome: cdnCallOutcomes },
  },
  cdnPurges: {
    name: 'darkroom_edge_purges_total',
    help: 'Purges that the CDN accepted twice (done), or did not accept for a day (failed).',
    labels: { outcome: ['done', 'failed'] },
  },
  queueWait: {
    name: 'darkroom_queue_wait_seconds',
    help: 'Waits of renders for a CPU slot; 0 if one was free.',
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

type LabelValue<Name extends keyof Metrics> = Metrics[Name] extends {
  readonly labels: Readonly<Record<string, readonly (infer Value extends string)[]>>;
}
  ? Value
  : 'all';

/** Class of a response; clients cannot choose the values of its members. */
export interface ResponseClass {
  /** `none`: the path is not in the contract. */
  readonly resource: ResourceName | 'upload' | 'none';
  /** 499, nginx's status, if the client disconnected before the response. */
  readonly status: number;
  readonly cache: CacheUse;
}

export interface ResponseCount {
  responses: number;
  /** Bytes of bodies that were written to sockets. */
  bodyBytes: number;
}

export interface Meter {
  count<Name extends Exclude<keyof Metrics, Timed>>(
    name: Name,
    value: LabelValue<Name>,
    by?: number,
  ): void;
  time<Name extends Timed>(name: Name, value: LabelValue<Name>, durationMs: number): void;
  /** Returns the counter of a class, the same object each time. */
  countOf(responseClass: ResponseClass): ResponseCount;
}

export interface Tools {
  readonly clock: Clock;
  /** Returns milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly meter: Meter;
  readonly log: Log;
}
