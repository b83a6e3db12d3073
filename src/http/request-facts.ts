import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { errorRegistry, formatCauses, type MediaError } from '../contract/errors.ts';
import { readUrl } from '../contract/external-url.ts';
import type { MediaRequest } from '../contract/media-request.ts';
import { resultKey } from '../contract/result-key.ts';
import type { SignatureVerdict } from '../contract/signing/attachment-signature.ts';
import type { CapabilityVerdict } from '../contract/signing/relay-capability.ts';
import type { Meter, ResponseClass } from '../pipeline/meter.ts';
import type { Clock, Log } from '../pipeline/ports.ts';
import {
  type CacheOutcome,
  cacheUseOf,
  RequestTrace,
  type Stage,
} from '../pipeline/request-trace.ts';
import { SiteFailure } from '../pipeline/site-failure.ts';
import type { RequestLog } from '../telemetry/log.ts';
import { describeTarget } from '../telemetry/redaction.ts';
import type { RequestSpan } from '../telemetry/request-span.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import { clientAddressOf, type ListAddresses } from './client-address.ts';

export interface Observers {
  readonly meter: Meter;
  /** Omit to log no requests, only their errors. */
  readonly requests: RequestLog | undefined;
  readonly log: Log;
  /** Omit to trace no requests. */
  readonly tracer: Pick<Tracing, 'begin'> | undefined;
  readonly clock: Clock;
  readonly listAddresses: ListAddresses;
}

export interface RequestFacts {
  readonly request: IncomingMessage;
  readonly beganMs: number;
  readonly trace: RequestTrace;
  readonly span: RequestSpan | undefined;
  /** Set at the first use: see `idOf`. */
  id: string | undefined;
  resource: ResponseClass['resource'];
  media: MediaRequest | undefined;
  /** `resultKey` of a media request, or the path of an upload without its capability. */
  key: string | undefined;
  signature: SignatureVerdict | undefined;
  capability: CapabilityVerdict | undefined;
  receivedBytes: number | undefined;
  /** Keys of the originals that the response depends on: the CDN in front gets their tags. */
  originKeys: readonly string[];
  /** Returns the maximum `max-age` of a refusal in seconds. Omit for the general maximum. */
  maxRefusalAgeSeconds: (() => number | undefined) | undefined;
  outcome: CacheOutcome | undefined;
  error: MediaError | undefined;
  body: unknown;
  sendingSinceMs: number | undefined;
  endSending: ReturnType<RequestSpan['begin']> | undefined;
}

/** nginx's status for a client that disconnected before the response. */
const CLIENT_GONE = 499;

const NO_KEYS: readonly string[] = [];

/** Accepted ids of requests: UUIDs, ULIDs, trace ids, ids of nginx and load balancers; safe in headers and the log. */
export const REQUEST_ID_FORM = /^[A-Za-z0-9._~+/=:-]{1,128}$/;

export function startFacts(request: IncomingMessage, { clock, tracer }: Observers): RequestFacts {
  const beganMs = clock.nowMs();
  const span = tracer?.begin(request);
  return {
    request,
    beganMs,
    trace: new RequestTrace(clock, span?.isRecording ? span : undefined),
    span,
    id: undefined,
    resource: 'none',
    media: undefined,
    key: undefined,
    signature: undefined,
    capability: undefined,
    receivedBytes: undefined,
    originKeys: NO_KEYS,
    maxRefusalAgeSeconds: undefined,
    outcome: undefined,
    error: undefined,
    body: undefined,
    sendingSinceMs: undefined,
    endSending: undefined,
  };
}

/** Returns the id of a request, for its response and the log: its `X-Request-Id` if that is valid, else a new one. */
export function idOf(facts: RequestFacts): string {
  const sent = facts.request.headers['x-request-id'];
  facts.id ??= typeof sent === 'string' && REQUEST_ID_FORM.test(sent) ? sent : randomUUID();
  return facts.id;
}

/** Starts the stage `send`, once the head of the response is complete. Further calls only replace the body. */
export function startSending(facts: RequestFacts, body: unknown, observers: Observers): void {
  facts.body = body;
  if (skipsAccessLog(facts, observers)) return;
  facts.sendingSinceMs ??= observers.clock.nowMs();
  // Traces do not show the stages of a hit in memory.
  if (facts.span?.isRecording && cacheUseOf(facts.outcome) !== 'memory') {
    facts.endSending ??= facts.span.begin('send');
  }
}

/**
 * Logs an error, except a client's. Errors that clients can cause at will are logged without a stack: stacks are for
 * errors that an operator has to fix.
 */
export function reportError(
  facts: RequestFacts,
  error: MediaError,
  { log, listAddresses }: Observers,
): void {
  const { code, cause } = error;
  const { fault } = errorRegistry[code];
  if (fault === 'client') return;
  const where = {
    id: idOf(facts),
    code,
    url: describeTarget(facts.request.url ?? ''),
    client: clientAddressOf(listAddresses(facts.request)),
  };
  const brief = { ...where, reason: cause instanceof Error ? cause.message : undefined };
  if (cause instanceof SiteFailure) {
    const { reason: why, host = hostOf(facts.media), address } = cause.details;
    const details = { ...brief, why, host, address, cause: formatCauses(cause.cause).slice(2) };
    log.warn(details, 'a fetch from another site failed or was refused');
    return;
  }
  switch (fault) {
    case 'service':
    case 'origin':
      log.error({ ...where, err: error }, 'a request failed');
      break;
    case 'load':
      log.warn(brief, 'request rejected: overloaded');
      break;
    case 'original':
      log.info(brief, 'an original was refused');
      break;
  }
}

export function finishRequest(
  facts: RequestFacts,
  response: ServerResponse,
  observers: Observers,
): void {
  const { meter } = observers;
  const { resource, outcome, error, id, media } = facts;
  const { headersSent, statusCode } = response;
  const status = headersSent ? statusCode : CLIENT_GONE;
  const cache = cacheUseOf(outcome);
  const bytes = countSentBytes(facts.body, response);
  const count = meter.countOf({ resource, status, cache });
  count.responses += 1;
  count.bodyBytes += bytes;
  if (error?.bottleneck !== undefined) meter.count('refusals', error.bottleneck);
  if (error?.code === 'RATE_LIMITED') meter.count('rateLimited', resource);
  facts.endSending?.({ bytes });
  facts.span?.end({
    resource,
    status: headersSent ? statusCode : undefined,
    code: error?.code,
    cache,
    bytes,
    id,
    media,
  });
  if (!skipsAccessLog(facts, observers)) logRequest(facts, status, bytes, observers);
}

function logRequest(
  facts: RequestFacts,
  status: number,
  bytes: number,
  observers: Observers,
): void {
  const { meter, clock, requests, listAddresses } = observers;
  const { request, media, signature, capability, error, receivedBytes, span } = facts;
  const nowMs = clock.nowMs();
  const isPlain = isPlainHit(facts);
  const level = isPlain ? 'debug' : 'info';
  const stagesMs: Partial<Record<Stage, number>> = {};
  const addStage = (stage: Stage, durationMs: number): void => {
    if (!isPlain) meter.time('stage', stage, durationMs);
    stagesMs[stage] = roundMs(durationMs);
  };
  for (const { stage, durationMs } of facts.trace.timings) addStage(stage, durationMs);
  if (facts.sendingSinceMs !== undefined) addStage('send', nowMs - facts.sendingSinceMs);
  if (requests?.isLevelEnabled(level) !== true) return;
  const line = {
    id: idOf(facts),
    method: request.method ?? '',
    resource: facts.resource,
    asset: describeAsset(facts),
    ...(media?.url !== undefined && { host: hostOf(media) }),
    ...(signature && { signature }),
    ...(capability && { capability }),
    status,
    ...(error && { code: error.code }),
    cache: cacheUseOf(facts.outcome),
    bytes,
    ...(receivedBytes !== undefined && { receivedBytes }),
    durationMs: roundMs(nowMs - facts.beganMs),
    stagesMs,
    client: clientAddressOf(listAddresses(request)),
    ...(span && { traceId: span.traceId }),
  };
  requests[level](line, 'request');
}

function isPlainHit({ outcome, error }: RequestFacts): boolean {
  return cacheUseOf(outcome) === 'memory' && error === undefined;
}

/** Whether a request is counted but not logged: most requests are plain hits, which are logged only at `debug`. */
function skipsAccessLog(facts: RequestFacts, { requests }: Observers): boolean {
  return isPlainHit(facts) && requests?.isLevelEnabled('debug') !== true;
}

function describeAsset({ key, media, request }: RequestFacts): string {
  if (key !== undefined) return key;
  return media === undefined ? describeTarget(request.url ?? '') : resultKey(media);
}

function roundMs(durationMs: number): number {
  return Math.round(durationMs * 1000) / 1000;
}

/** Returns the host of external media. The rest of a URL may contain a secret. */
function hostOf(media: MediaRequest | undefined): string | undefined {
  const url = media?.url;
  return url === undefined ? undefined : readUrl(url)?.host;
}

function countSentBytes(body: unknown, { writableFinished }: ServerResponse): number {
  if (body instanceof Buffer) return writableFinished ? body.length : 0;
  // Streams may count the bytes that the client has read.
  return body instanceof Readable && 'passedBytes' in body ? Number(body.passedBytes) : 0;
}
