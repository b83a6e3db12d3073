import type { IncomingMessage, ServerResponse } from 'node:http';
import type { LookUps, ResponseCount } from '../../pipeline/meter.ts';
import type { MediaResult } from '../../pipeline/ports.ts';
import { roundMs } from '../../telemetry/request-log.ts';
import { COMMON_HEADERS } from '../common-headers.ts';
import { formatHttpDate } from '../http-date.ts';
import { requestIdOf } from '../request-id.ts';
import type { RequestWatchers } from '../request-record.ts';
import { PIECE_BYTES } from './buffer-chunks.ts';
import { formatCacheStatus } from './cache-status.ts';
import { isNotModified } from './conditional.ts';
import { formatMediaDisposition } from './media-disposition.ts';
import { formatServerTiming } from './server-timing.ts';
import type { KnownTarget, TargetMemory } from './target-memory.ts';

/** What the lane stands on. */
export interface FastPathParts {
  /** A current answer in memory, or `undefined`. */
  readonly findHit: (target: KnownTarget) => MediaResult | undefined;
  readonly targets: TargetMemory;
  /** `Cache-Control` of media. */
  readonly cacheControl: string;
  readonly watchers: RequestWatchers;
  /** Whether somebody in front may say whose a request is. */
  readonly trustsProxy: boolean;
  /** Of answers in memory. */
  readonly lookUps: LookUps;
}

/** Names and values, one after the other; the last value is told anew in each answer. */
type Head = string[];

/** What answers of a kind begin with, and where they are counted. */
interface ReadyAnswer {
  readonly status: number;
  readonly head: Head;
  readonly count: ResponseCount;
}

/** A target's answers. */
interface ReadyAnswers {
  /** The result that they are of. Not to be kept alive by them. */
  readonly result: WeakRef<MediaResult>;
  /** A 200, and a 304. */
  readonly whole: ReadyAnswer;
  readonly current: ReadyAnswer;
}

/** A hit, as far as it is told of. */
interface ToldHit {
  readonly id: string;
  readonly method: string;
  readonly status: number;
  readonly bytes: number;
  readonly target: KnownTarget;
  readonly enteredMs: number;
  readonly durationMs: number;
  readonly traceId: string | undefined;
}

/**
 * Answers plain cache hits of HTTP/1.1 without Fastify, from headers that are kept ready with the result: two
 * and a half times as many as with hooks, promises and a header at a time. Whatever is not as plain takes the
 * usual way, and gets the same answer there: the first hit of each target, other methods, ranges, HTTP/2, what
 * is large, what must be asked of the origin.
 */
export class FastPath {
  readonly #parts: FastPathParts;
  /** Where every hit is told of with the address that a proxy tells: Fastify finds that, here nobody does. */
  readonly #isClosed: boolean;
  /** Some kilobyte each; there are no more than targets are remembered. */
  readonly #ready = new WeakMap<KnownTarget, ReadyAnswers>();

  constructor(parts: FastPathParts) {
    this.#parts = parts;
    this.#isClosed = parts.trustsProxy && parts.watchers.requests.scope === 'all';
  }

  /** Answers a request, if that takes no more than a look into the memory; tells whether it did. */
  tryAnswer(request: IncomingMessage, response: ServerResponse): boolean {
    if (this.#isClosed) return false;
    const { method, url, headers, httpVersionMajor } = request;
    if (httpVersionMajor !== 1 || (method !== 'GET' && method !== 'HEAD')) return false;
    if (url === undefined || headers.range !== undefined) return false;
    const { watchers, findHit, targets, lookUps } = this.#parts;
    const { clock } = watchers;
    const target = targets.find(url);
    if (target === undefined) return false;
    const enteredMs = clock.nowMs();
    const result = findHit(target);
    if (result === undefined || result.body.byteLength > PIECE_BYTES) return false;
    const ready = this.#prepare(result, target);
    const durationMs = clock.nowMs() - enteredMs;
    const conditions = {
      ifNoneMatch: headers['if-none-match'],
      ifModifiedSince: headers['if-modified-since'],
    };
    const isCurrent = isNotModified(conditions, result);
    const { status, head, count } = isCurrent ? ready.current : ready.whole;
    head[head.length - 1] = formatServerTiming([{ room: 'store', durationMs }]) ?? '';
    const id = this.#identify(headers['x-request-id']);
    const { httpVersion } = request;
    const span = watchers.tracer?.begin({ method, target: url, httpVersion, headers });
    try {
      response.writeHead(status, id === undefined ? head : [...head, 'x-request-id', id]);
    } catch {
      // Of a head that Node does not write, nothing is out yet; thrown from here, it would end the process.
      return false;
    }
    const { buffer, byteOffset, byteLength } = result.body;
    const hasBody = !isCurrent && method === 'GET';
    response.end(hasBody ? Buffer.from(buffer, byteOffset, byteLength) : undefined);
    lookUps.found += 1;
    count.answers += 1;
    if (hasBody) count.bodyBytes += byteLength;
    const bytes = hasBody ? byteLength : 0;
    if (span?.isRecorded) {
      const { request: media } = target;
      const { resource } = media;
      const hit = { resource, status, code: undefined, cache: 'memory', bytes, id, media } as const;
      response.once('close', () => span.end(hit));
    }
    if (id === undefined || watchers.requests.scope !== 'all') return true;
    const traceId = span?.traceId;
    const hit = { id, method, status, bytes, target, enteredMs, durationMs, traceId };
    this.#tell(request, response, hit);
    return true;
  }

  /** None is made where nobody could look it up: that alone would be a tenth of what a hit takes. */
  #identify(sent: string | string[] | undefined): string | undefined {
    const isTold = this.#parts.watchers.requests.scope === 'all';
    return sent === undefined && !isTold ? undefined : requestIdOf(sent);
  }

  /** Only where every hit is wanted in the log: it takes as long as all the rest. */
  #tell(request: IncomingMessage, response: ServerResponse, hit: ToldHit): void {
    const { clock, requests } = this.#parts.watchers;
    const { id, method, status, bytes, target, enteredMs, durationMs, traceId } = hit;
    // Once it is closed, there is no address.
    const client = request.socket.remoteAddress ?? '';
    const sendingSinceMs = clock.nowMs();
    response.once('close', () => {
      const nowMs = clock.nowMs();
      const line = {
        id,
        method,
        resource: target.request.resource,
        asset: target.key,
        status,
        cache: 'memory',
        bytes,
        durationMs: roundMs(nowMs - enteredMs),
        stagesMs: { store: roundMs(durationMs), send: roundMs(nowMs - sendingSinceMs) },
        client,
        ...(traceId !== undefined && { traceId }),
      } as const;
      requests.tell(line, true);
    });
  }

  #prepare(result: MediaResult, target: KnownTarget): ReadyAnswers {
    const ready = this.#ready.get(target);
    if (ready?.result.deref() === result) return ready;
    const { body, mimeType, etag, lastModified } = result;
    const disposition = formatMediaDisposition(target.request, mimeType);
    const ofState = {
      ...COMMON_HEADERS,
      etag,
      'cache-control': this.#parts.cacheControl,
      ...(lastModified !== undefined && { 'last-modified': formatHttpDate(lastModified) }),
    };
    const ofBody = {
      'content-type': mimeType,
      'content-length': String(body.byteLength),
      'accept-ranges': 'bytes',
      ...(disposition !== undefined && { 'content-disposition': disposition }),
    };
    const ofRequest = {
      'cache-status': formatCacheStatus({ kind: 'hit' }),
      'server-timing': '',
    };
    const { meter } = this.#parts.watchers;
    const { resource } = target.request;
    const answerOf = (status: number, headers: Readonly<Record<string, string>>): ReadyAnswer => ({
      status,
      head: Object.entries(headers).flat(),
      count: meter.countOf({ resource, status, cache: 'memory' }),
    });
    const answers = {
      result: new WeakRef(result),
      whole: answerOf(200, { ...ofState, ...ofBody, ...ofRequest }),
      current: answerOf(304, { ...ofState, ...ofRequest }),
    };
    this.#ready.set(target, answers);
    return answers;
  }
}
