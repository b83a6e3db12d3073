import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { errorRegistry, formatCauses, type MediaError } from '../contract/errors.ts';
import { readUrl } from '../contract/external-url.ts';
import type { MediaRequest } from '../contract/media-request.ts';
import type { ResourceName } from '../contract/resources.ts';
import { resultKey } from '../contract/result-key.ts';
import type { SignatureVerdict } from '../contract/signing/attachment-signature.ts';
import type { CapabilityVerdict } from '../contract/signing/relay-capability.ts';
import type { Meter, ResponseClass } from '../pipeline/meter.ts';
import type { Clock, Log } from '../pipeline/ports.ts';
import { cacheUseOf, RequestTrace, type Stage } from '../pipeline/request-trace.ts';
import { SiteFailure } from '../pipeline/site-failure.ts';
import type { RequestLog } from '../telemetry/log.ts';
import { describeTarget } from '../telemetry/redaction.ts';
import type { RequestSpan } from '../telemetry/request-span.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import { clientAddressOf, type ListAddresses } from './client-address.ts';
import { requestIdOf } from './head.ts';

/** Parts that count, log and trace requests and their responses. */
export interface Observers {
  readonly meter: Meter;
  /** `undefined`: the log has no requests, only their errors. */
  readonly requests: RequestLog | undefined;
  readonly log: Log;
  /** `undefined`: there are no traces. */
  readonly tracer: Pick<Tracing, 'begin'> | undefined;
  readonly clock: Clock;
  readonly addressesOf: ListAddresses;
}

/** nginx's status for a client that has gone before its response. */
const CLIENT_GONE = 499;

/** Record of one request, from its head to the end of its response, which counts, logs and traces it. */
export class RequestRecord {
  readonly trace: RequestTrace;
  readonly #observers: Observers;
  readonly #request: IncomingMessage;
  readonly #span: RequestSpan | undefined;
  readonly #beganMs: number;
  #id: string | undefined;
  #resource: ResponseClass['resource'] = 'none';
  #media: MediaRequest | undefined;
  #key: string | undefined;
  #signature: SignatureVerdict | undefined;
  #capability: CapabilityVerdict | undefined;
  #receivedBytes: number | undefined;
  #error: MediaError | undefined;
  #body: unknown;
  #sendingSinceMs: number | undefined;
  #endSending: ReturnType<RequestSpan['begin']> | undefined;

  constructor(request: IncomingMessage, observers: Observers) {
    const { clock, tracer } = observers;
    this.#request = request;
    this.#observers = observers;
    this.#beganMs = clock.nowMs();
    this.#span = tracer?.begin(request);
    this.trace = new RequestTrace(clock, this.#span?.isRecording ? this.#span : undefined);
  }

  get id(): string {
    this.#id ??= requestIdOf(this.#request.headers['x-request-id']);
    return this.#id;
  }

  /**
   * Notes what the request is for.
   *
   * @param key the request's `resultKey`, if already known
   */
  noteTarget(resource: ResourceName, media?: MediaRequest, key?: string): void {
    this.#resource = resource;
    this.#media = media;
    this.#key = key;
  }

  noteSignature(verdict: SignatureVerdict): void {
    this.#signature = verdict;
  }

  noteCapability(verdict: CapabilityVerdict): void {
    this.#capability = verdict;
  }

  /**
   * Notes that the request is an upload.
   *
   * @param rawPath its path without the query, which has a capability in it
   */
  noteUpload(rawPath: string): void {
    this.#resource = 'upload';
    this.#key = describeTarget(rawPath);
    this.#receivedBytes = 0;
  }

  noteReceived(bytes: number): void {
    this.#receivedBytes = (this.#receivedBytes ?? 0) + bytes;
  }

  /** Notes that the head of the response is complete, and its body; once more if that fails before its first byte. */
  noteResponse(body: unknown): void {
    this.#body = body;
    if (this.#isUnlogged) return;
    this.#sendingSinceMs ??= this.#observers.clock.nowMs();
    // A trace shows no stages of a hit in memory.
    if (this.#span?.isRecording && cacheUseOf(this.trace.outcome) !== 'memory') {
      this.#endSending ??= this.#span.begin('send');
    }
  }

  noteError(error: MediaError): void {
    this.#error = error;
    this.report(error);
  }

  get isExternal(): boolean {
    return this.#media?.url !== undefined;
  }

  /**
   * Logs an error, unless it is the client's fault. Errors that clients can cause at will get a line without a stack:
   * stacks are for errors that an operator has to fix.
   */
  report(error: MediaError): void {
    const { log } = this.#observers;
    const { code, cause } = error;
    const { fault } = errorRegistry[code];
    if (fault === 'client') return;
    const where = {
      id: this.id,
      code,
      url: describeTarget(this.#target),
      client: clientAddressOf(this.#observers.addressesOf(this.#request)),
    };
    const brief = { ...where, reason: cause instanceof Error ? cause.message : undefined };
    if (cause instanceof SiteFailure) {
      const { reason: why, host = hostOf(this.#media), address } = cause.details;
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

  /** Counts, logs and traces the request when its response is closed, complete or not. */
  end(response: ServerResponse): void {
    const { meter } = this.#observers;
    const { headersSent, statusCode } = response;
    const status = headersSent ? statusCode : CLIENT_GONE;
    const cache = cacheUseOf(this.trace.outcome);
    const resource = this.#resource;
    const bytes = countSentBytes(this.#body, response);
    const count = meter.countOf({ resource, status, cache });
    count.responses += 1;
    count.bodyBytes += bytes;
    const bottleneck = this.#error?.bottleneck;
    if (bottleneck !== undefined) meter.count('refusals', bottleneck);
    if (this.#error?.code === 'RATE_LIMITED') meter.count('rateLimited', resource);
    this.#endSending?.({ bytes });
    this.#span?.end({
      resource,
      status: headersSent ? statusCode : undefined,
      code: this.#error?.code,
      cache,
      bytes,
      id: this.#id,
      media: this.#media,
    });
    if (!this.#isUnlogged) this.#log(status, bytes);
  }

  #log(status: number, bytes: number): void {
    const { meter, clock, requests } = this.#observers;
    const nowMs = clock.nowMs();
    const isPlainHit = this.#isPlainHit;
    const level = isPlainHit ? 'debug' : 'info';
    const stagesMs: Partial<Record<Stage, number>> = {};
    const noteStage = (stage: Stage, durationMs: number): void => {
      if (!isPlainHit) meter.time('stage', stage, durationMs);
      stagesMs[stage] = roundMs(durationMs);
    };
    for (const { stage, durationMs } of this.trace.timings) noteStage(stage, durationMs);
    if (this.#sendingSinceMs !== undefined) noteStage('send', nowMs - this.#sendingSinceMs);
    if (requests?.isLevelEnabled(level) !== true) return;
    const line = {
      id: this.id,
      method: this.#request.method ?? '',
      resource: this.#resource,
      asset: this.#describeAsset(),
      ...(this.isExternal && { host: hostOf(this.#media) }),
      ...(this.#signature && { signature: this.#signature }),
      ...(this.#capability && { capability: this.#capability }),
      status,
      ...(this.#error && { code: this.#error.code }),
      cache: cacheUseOf(this.trace.outcome),
      bytes,
      ...(this.#receivedBytes !== undefined && { receivedBytes: this.#receivedBytes }),
      durationMs: roundMs(nowMs - this.#beganMs),
      stagesMs,
      client: clientAddressOf(this.#observers.addressesOf(this.#request)),
      ...(this.#span && { traceId: this.#span.traceId }),
    };
    requests[level](line, 'request');
  }

  get #target(): string {
    return this.#request.url ?? '';
  }

  get #isPlainHit(): boolean {
    return cacheUseOf(this.trace.outcome) === 'memory' && this.#error === undefined;
  }

  /** Whether neither the log nor the stage times need more of it: plain hits are most of all requests. */
  get #isUnlogged(): boolean {
    return this.#isPlainHit && this.#observers.requests?.isLevelEnabled('debug') !== true;
  }

  #describeAsset(): string {
    if (this.#key !== undefined) return this.#key;
    return this.#media === undefined ? describeTarget(this.#target) : resultKey(this.#media);
  }
}

/** Rounds a duration to the microsecond: more digits would only be noise. */
function roundMs(durationMs: number): number {
  return Math.round(durationMs * 1000) / 1000;
}

/** Returns the host of external media; never more of a URL, which may have a secret in it. */
function hostOf(media: MediaRequest | undefined): string | undefined {
  const url = media?.url;
  return url === undefined ? undefined : readUrl(url)?.host;
}

function countSentBytes(body: unknown, { writableFinished }: ServerResponse): number {
  if (body instanceof Buffer) return writableFinished ? body.length : 0;
  // Others may count what their receiver has asked for.
  return body instanceof Readable && 'passedBytes' in body ? Number(body.passedBytes) : 0;
}
