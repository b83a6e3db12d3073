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

/** State of a request: what its response depends on, and what is counted, logged and traced at its end. */
export interface RequestState {
  readonly request: IncomingMessage;
  readonly beganMs: number;
  readonly trace: RequestTrace;
  readonly span: RequestSpan | undefined;
  id: string | undefined;
  resource: ResponseClass['resource'];
  media: MediaRequest | undefined;
  /** Media or upload in the log: its `resultKey`, or its path without the capability. */
  asset: string | undefined;
  signature: SignatureVerdict | undefined;
  capability: CapabilityVerdict | undefined;
  receivedBytes: number | undefined;
  /** Keys of the originals that the response depends on, for the tags of the CDN in front. */
  originKeys: readonly string[];
  /** Returns the maximum `max-age` of a 400, 415 or 422 in seconds. Omit for the general maximum. */
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

/** Accepted `X-Request-Id`: UUIDs, ULIDs, trace ids, ids of nginx and load balancers; safe in headers and the log. */
export const REQUEST_ID = /^[A-Za-z0-9._~+/=:-]{1,128}$/;

export function startRequest(request: IncomingMessage, { clock, tracer }: Observers): RequestState {
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
    asset: undefined,
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

/** Returns the id of a request: its `X-Request-Id` if valid, else a new one. */
export function idOf(state: RequestState): string {
  const sent = state.request.headers['x-request-id'];
  state.id ??= typeof sent === 'string' && REQUEST_ID.test(sent) ? sent : randomUUID();
  return state.id;
}

/** Starts the stage `send`, once the head of the response is complete. Later calls only replace the body. */
export function startSending(state: RequestState, body: unknown, observers: Observers): void {
  state.body = body;
  if (skipsAccessLog(state, observers)) return;
  state.sendingSinceMs ??= observers.clock.nowMs();
  // Traces do not show the stages of a hit in memory.
  if (state.span?.isRecording && cacheUseOf(state.outcome) !== 'memory') {
    state.endSending ??= state.span.begin('send');
  }
}

/** Logs an error, except a client's. Only errors that an operator has to fix have a stack. */
export function reportError(
  state: RequestState,
  error: MediaError,
  { log, listAddresses }: Observers,
): void {
  const { code, cause } = error;
  const { fault } = errorRegistry[code];
  if (fault === 'client') return;
  const where = {
    id: idOf(state),
    code,
    url: describeTarget(state.request.url ?? ''),
    client: clientAddressOf(listAddresses(state.request)),
  };
  const brief = { ...where, reason: cause instanceof Error ? cause.message : undefined };
  if (cause instanceof SiteFailure) {
    const { reason: why, host = hostOf(state.media), address } = cause.details;
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
  state: RequestState,
  response: ServerResponse,
  observers: Observers,
): void {
  const { meter } = observers;
  const { resource, outcome, error, id, media } = state;
  const { headersSent, statusCode } = response;
  const status = headersSent ? statusCode : CLIENT_GONE;
  const cache = cacheUseOf(outcome);
  const bytes = countSentBytes(state.body, response);
  const count = meter.countOf({ resource, status, cache });
  count.responses += 1;
  count.bodyBytes += bytes;
  if (error?.bottleneck !== undefined) meter.count('refusals', error.bottleneck);
  if (error?.code === 'RATE_LIMITED') meter.count('rateLimited', resource);
  state.endSending?.({ bytes });
  state.span?.end({
    resource,
    status: headersSent ? statusCode : undefined,
    code: error?.code,
    cache,
    bytes,
    id,
    media,
  });
  if (!skipsAccessLog(state, observers)) logRequest(state, status, bytes, observers);
}

function logRequest(
  state: RequestState,
  status: number,
  bytes: number,
  observers: Observers,
): void {
  const { meter, clock, requests, listAddresses } = observers;
  const { request, media, signature, capability, error, receivedBytes, span } = state;
  const nowMs = clock.nowMs();
  const isPlain = isPlainHit(state);
  const level = isPlain ? 'debug' : 'info';
  const stagesMs: Partial<Record<Stage, number>> = {};
  const addStage = (stage: Stage, durationMs: number): void => {
    if (!isPlain) meter.time('stage', stage, durationMs);
    stagesMs[stage] = roundMs(durationMs);
  };
  for (const { stage, durationMs } of state.trace.timings) addStage(stage, durationMs);
  if (state.sendingSinceMs !== undefined) addStage('send', nowMs - state.sendingSinceMs);
  if (requests?.isLevelEnabled(level) !== true) return;
  const line = {
    id: idOf(state),
    method: request.method ?? '',
    resource: state.resource,
    asset: describeAsset(state),
    ...(media?.url !== undefined && { host: hostOf(media) }),
    ...(signature && { signature }),
    ...(capability && { capability }),
    status,
    ...(error && { code: error.code }),
    cache: cacheUseOf(state.outcome),
    bytes,
    ...(receivedBytes !== undefined && { receivedBytes }),
    durationMs: roundMs(nowMs - state.beganMs),
    stagesMs,
    client: clientAddressOf(listAddresses(request)),
    ...(span && { traceId: span.traceId }),
  };
  requests[level](line, 'request');
}

function isPlainHit({ outcome, error }: RequestState): boolean {
  return cacheUseOf(outcome) === 'memory' && error === undefined;
}

/** Whether a request is counted but not logged. Plain hits, which are most requests, are logged at `debug`. */
function skipsAccessLog(state: RequestState, { requests }: Observers): boolean {
  return isPlainHit(state) && requests?.isLevelEnabled('debug') !== true;
}

function describeAsset({ asset, media, request }: RequestState): string {
  if (asset !== undefined) return asset;
  return media === undefined ? describeTarget(request.url ?? '') : resultKey(media);
}

function roundMs(durationMs: number): number {
  return Math.round(durationMs * 1000) / 1000;
}

/** Returns the host of external media, for the log; the rest of the URL may contain a secret. */
function hostOf(media: MediaRequest | undefined): string | undefined {
  const url = media?.url;
  return url === undefined ? undefined : readUrl(url)?.host;
}

function countSentBytes(body: unknown, { writableFinished }: ServerResponse): number {
  if (body instanceof Buffer) return writableFinished ? body.length : 0;
  // Some streams count the bytes that they have sent.
  return body instanceof Readable && 'passedBytes' in body ? Number(body.passedBytes) : 0;
}
