import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock, MediaResult } from '../pipeline/ports.ts';
import { PIECE_BYTES } from './buffer-pieces.ts';
import { formatCacheStatus } from './cache-status.ts';
import { COMMON_HEADERS } from './common-headers.ts';
import { isNotModified } from './conditional.ts';
import { formatHttpDate } from './http-date.ts';
import { formatMediaDisposition } from './media-disposition.ts';
import { formatServerTiming } from './server-timing.ts';
import type { KnownTarget, TargetMemory } from './target-memory.ts';

/** What the lane stands on. */
export interface HitLaneParts {
  /** A current answer in memory, or `undefined`. */
  readonly findHit: (target: KnownTarget) => MediaResult | undefined;
  readonly targets: TargetMemory;
  /** `Cache-Control` of media. */
  readonly cacheControl: string;
  readonly clock: Clock;
}

/** Names and values, one after the other; the last value is told anew in each answer. */
type Head = string[];

/** The heads of a target's answers. */
interface ReadyHeads {
  /** The result that they are of. Not to be kept alive by them. */
  readonly result: WeakRef<MediaResult>;
  /** Of a 200, and of a 304. */
  readonly whole: Head;
  readonly current: Head;
}

/**
 * Answers plain cache hits of HTTP/1.1 without Fastify, from headers that are kept ready with the result: two
 * and a half times as many as with hooks, promises and a header at a time. Whatever is not as plain takes the
 * usual way, and gets the same answer there: the first hit of each target, other methods, ranges, HTTP/2, what
 * is large, what must be asked of the origin.
 */
export class HitLane {
  readonly #parts: HitLaneParts;
  /** Some kilobyte each; there are no more than targets are remembered. */
  readonly #ready = new WeakMap<KnownTarget, ReadyHeads>();

  constructor(parts: HitLaneParts) {
    this.#parts = parts;
  }

  /** Answers a request, if that takes no more than a look into the memory; tells whether it did. */
  tryAnswer(request: IncomingMessage, response: ServerResponse): boolean {
    const { method, url, headers, httpVersionMajor } = request;
    if (httpVersionMajor !== 1 || (method !== 'GET' && method !== 'HEAD')) return false;
    if (url === undefined || headers.range !== undefined) return false;
    const { clock, findHit, targets } = this.#parts;
    const target = targets.find(url);
    if (target === undefined) return false;
    const enteredMs = clock.nowMs();
    const result = findHit(target);
    if (result === undefined || result.body.byteLength > PIECE_BYTES) return false;
    const heads = this.#prepare(result, target);
    const durationMs = clock.nowMs() - enteredMs;
    const conditions = {
      ifNoneMatch: headers['if-none-match'],
      ifModifiedSince: headers['if-modified-since'],
    };
    const isCurrent = isNotModified(conditions, result);
    const head = isCurrent ? heads.current : heads.whole;
    head[head.length - 1] = formatServerTiming([{ room: 'store', durationMs }]) ?? '';
    try {
      response.writeHead(isCurrent ? 304 : 200, head);
    } catch {
      // Of a head that Node does not write, nothing is out yet; thrown from here, it would end the process.
      return false;
    }
    const { buffer, byteOffset, byteLength } = result.body;
    const hasBody = !isCurrent && method === 'GET';
    response.end(hasBody ? Buffer.from(buffer, byteOffset, byteLength) : undefined);
    return true;
  }

  #prepare(result: MediaResult, target: KnownTarget): ReadyHeads {
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
    const ofRequest = { 'cache-status': formatCacheStatus({ kind: 'hit' }), 'server-timing': '' };
    const heads = {
      result: new WeakRef(result),
      whole: Object.entries({ ...ofState, ...ofBody, ...ofRequest }).flat(),
      current: Object.entries({ ...ofState, ...ofRequest }).flat(),
    };
    this.#ready.set(target, heads);
    return heads;
  }
}
