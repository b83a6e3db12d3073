import { createHash } from 'node:crypto';
import type { Exchange } from './exchange.ts';
import type { PurposedShot } from './load-mix.ts';

/** A request that was made, and what came of it, but for the bytes. */
export interface Visit extends PurposedShot, Omit<Exchange, 'received' | 'body'> {
  /** Of an error's body. */
  readonly code: string | undefined;
  /** From memory. */
  readonly isHit: boolean;
  /** What is wrong with a whole response whose status may be right. */
  readonly lie: string | undefined;
}

/** Remembers what was received, so that the same question must get the same response. */
export class Witness {
  /** What popular images were received with, by path. */
  readonly tags = new Map<string, Headers>();
  readonly #digests = new Map<string, string>();

  /** Compares what a shot wanted with what it got. */
  testify(shot: PurposedShot, exchange: Exchange): Visit {
    const { received, body: _, ...rest } = exchange;
    return {
      ...shot,
      ...rest,
      code: readCode(exchange),
      isHit: /^darkroom; hit/.test(received.get('cache-status') ?? ''),
      lie: exchange.ending === 'complete' ? this.#findLie(shot, exchange) : undefined,
    };
  }

  #findLie(
    { method, path, purpose, readBody }: PurposedShot,
    { status, received, body }: Exchange,
  ): string | undefined {
    if (method !== 'GET') return body.length > 0 && method === 'HEAD' ? 'a body' : undefined;
    if (status !== 200 && status !== 206) return undefined;
    if (Number(received.get('content-length')) !== body.length) return 'another Content-Length';
    if (readBody !== undefined) {
      return readBody().equals(body) ? undefined : 'other bytes than the original';
    }
    if (status !== 200) return undefined;
    const etag = received.get('etag');
    if (etag === null) return 'no ETag';
    if (purpose === 'popular image') this.tags.set(path, received);
    const digest = createHash('sha1').update(etag).update(body).digest('base64');
    const before = this.#digests.get(path) ?? digest;
    this.#digests.set(path, before);
    return before === digest ? undefined : 'another body or ETag than before';
  }
}

function readCode({ status = 0, ending, body }: Exchange): string | undefined {
  if (status < 400 || ending !== 'complete' || body.length === 0) return undefined;
  try {
    const error = JSON.parse(body.toString()) as { readonly code?: unknown } | null;
    return String(error?.code ?? 'no code');
  } catch {
    return 'no JSON';
  }
}
