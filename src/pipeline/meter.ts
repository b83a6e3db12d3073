import type { Bottleneck } from '../contract/errors.ts';
import type { ResourceName } from '../contract/resources.ts';
import type { SignatureVerdict } from '../contract/signing/attachment-signature.ts';
import type { CacheUse, TimedStage } from './cache-outcome.ts';
import type { Lane } from './ports.ts';
import { siteFailureReasons } from './site-failure.ts';

/** Lookups in one of the memories. A plain pair of numbers, so that to count costs no more than to add. */
export interface LookupCount {
  found: number;
  missed: number;
}

/** What is looked into: results in memory, originals in memory, the store that outlives the process. */
export const memories = ['results', 'originals', 'store'] as const;
export type Memory = (typeof memories)[number];

/** Counts what happens in the pipeline, for operators. */
export interface Meter {
  /** The code that looks adds to them. */
  readonly lookups: Readonly<Record<Memory, LookupCount>>;
  /** A render has got its CPU slot, after so many milliseconds; 0 where one was free. */
  readonly noteQueueWait: (lane: Lane, waitedMs: number) => void;
}

/** Of what class a response is; each member has few values, and none of them is a client's. */
export interface ResponseClass {
  /** `none`: the path is none of the contract's. */
  readonly resource: ResourceName | 'upload' | 'none';
  /** 499, as nginx has it, where the client has gone before there was one. */
  readonly status: number;
  readonly cache: CacheUse;
}

/** Responses of one class; the code that sends them adds to it. */
export interface ResponseCount {
  responses: number;
  /** Of bodies, as far as they were handed over to the system. */
  bodyBytes: number;
}

/** Where the time of a request goes: into the stages, and into sending its body. */
export type Stage = TimedStage | 'send';

/** Counts responses. */
export interface ResponseMeter {
  /** The same object each time for one class. */
  countOf(responseClass: ResponseClass): ResponseCount;
  /** URLs of attachments by what their signatures are; the code that judges them adds to it. */
  readonly signatures: Record<SignatureVerdict, number>;
  /** A request has spent so long in a stage. */
  readonly noteStage: (stage: Stage, durationMs: number) => void;
  /** A request was turned away, for want of this. */
  readonly noteRefusal: (bottleneck: Bottleneck) => void;
  /** A client has had its share of rendering, and asked for more of this. */
  readonly noteLimited: (resource: ResponseClass['resource']) => void;
}

/**
 * What a read from the origin has come to: there is no such object; it has failed, or not responded in
 * time; or no request waited for it any more.
 */
export const originOutcomes = ['found', 'missing', 'failed', 'timeout', 'stopped'] as const;
export type OriginOutcome = (typeof originOutcomes)[number];

/** Counts what the origin does. */
export interface OriginMeter {
  readonly noteOutcome: (outcome: OriginOutcome) => void;
  readonly noteReadBytes: (count: number) => void;
  /** A body that was begun was not sent to its end. */
  readonly noteBrokenBody: () => void;
}

/**
 * What a fetch from another site has come to: the whole or a part is coming; what was known still holds; there is no
 * such thing; why it was refused or has failed; too many waited for a connection; or no request waited for it any more.
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

/** Counts fetches from other sites. */
export interface SiteMeter {
  readonly noteFetch: (outcome: FetchOutcome) => void;
}

/** Counts uploads. */
export interface UploadMeter {
  /** So many bytes of a body have come, be they stored in the end or not. */
  readonly noteUploadedBytes: (count: number) => void;
}
