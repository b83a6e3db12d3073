import { createHash } from 'node:crypto';
import type { Exchange } from './exchange.ts';
import type { KnownTag } from './load-mix.ts';
import type { PurposedShot } from './shots.ts';

/** A request that was made, and what came of it: a shot and its exchange, without their bytes. */
export interface Visit extends Omit<PurposedShot, 'question' | 'readBody'> {
  readonly method: string;
  readonly path: string;
  /** After the load began. */
  readonly startedMs: number;
  readonly endedMs: number;
  readonly status: number | undefined;
  /** Of an error's body. */
  readonly code: string | undefined;
  readonly ending: Exchange['ending'];
  readonly failure: string | undefined;
  /** From memory. */
  readonly isHit: boolean;
  /** What is wrong with a whole response whose status may be right. */
  readonly lie: string | undefined;
}

/** Remembers what was received, so that the same question must get the same response. */
export class Witness {
  readonly #digests = new Map<string, string>();
  readonly #tags = new Map<string, KnownTag>();

  /** Validators of what popular images were received with, by path. */
  get tags(): ReadonlyMap<string, KnownTag> {
    return this.#tags;
  }

  /** @param beganMs when the load began, since 1970 */
  testify(shot: PurposedShot, exchange: Exchange, beganMs: number): Visit {
    const { question, readBody: _, ...rest } = shot;
    const { startedMs, endedMs, status, ending, failure, headers } = exchange;
    return {
      ...rest,
      method: question.method,
      path: question.path,
      startedMs: startedMs - beganMs,
      endedMs: endedMs - beganMs,
      status,
      code: readCode(exchange),
      ending,
      failure,
      isHit: /^darkroom; hit/.test(headers.get('cache-status') ?? ''),
      lie: ending === 'complete' ? this.#findLie(shot, exchange) : undefined,
    };
  }

  #findLie(shot: PurposedShot, { status, headers, body }: Exchange): string | undefined {
    const { method, path } = shot.question;
    if (method !== 'GET') return body.length > 0 && method === 'HEAD' ? 'a body' : undefined;
    if (status !== 200 && status !== 206) return undefined;
    if (Number(headers.get('content-length')) !== body.length) return 'another Content-Length';
    if (shot.readBody !== undefined) {
      return shot.readBody().equals(body) ? undefined : 'other bytes than the original';
    }
    if (status !== 200) return undefined;
    const etag = headers.get('etag');
    if (etag === null) return 'no ETag';
    if (shot.purpose === 'popular image') {
      const lastModified = headers.get('last-modified') ?? undefined;
      this.#tags.set(path, { etag, lastModified });
    }
    const digest = createHash('sha1').update(etag).update(body).digest('base64');
    const before = this.#digests.get(path) ?? digest;
    this.#digests.set(path, before);
    return before === digest ? undefined : 'another body or ETag than before';
  }
}

function readCode({ status, ending, body }: Exchange): string | undefined {
  if (status === undefined || status < 400 || ending !== 'complete' || body.length === 0) {
    return undefined;
  }
  try {
    const error: unknown = JSON.parse(body.toString());
    return typeof error === 'object' && error !== null && 'code' in error
      ? String(error.code)
      : 'no code';
  } catch {
    return 'no JSON';
  }
}
