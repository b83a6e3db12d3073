import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { epochMs } from '../harness/load.ts';
import type { Shot } from './requests.ts';
import { isExcused, type Trouble } from './trouble.ts';

/**
 * Verdict on a response: right; wrong, but the originals were made to fail; refused in a burst; a heavy render refused
 * without a burst, which may happen seldom; or wrong.
 */
export type Verdict = 'expected' | 'originals failed' | 'burst' | 'refused' | 'unexpected';

/** Request that was made, and its outcome. */
export interface Visit extends Pick<Shot, 'purpose' | 'method' | 'path' | 'render'> {
  /** Since 1970. */
  readonly startedMs: number;
  readonly tookMs: number;
  /** Status, and code of an error. */
  readonly response: string;
  readonly isHit: boolean;
  readonly verdict: Verdict;
  /** Why it is unexpected, or how it ended. */
  readonly reason: string;
}

/**
 * `complete`: to the last byte; `left`: the client hung up; `broken`: the server closed within a response;
 * `no response`: it closed before one; `hung`: no end for a long time.
 */
type Ending = 'complete' | 'left' | 'broken' | 'no response' | 'hung';

interface Exchange {
  readonly ending: Ending;
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
  /** Error of the connection. */
  readonly failure: string;
}

/** Time without an end after which a request counts as hung. */
const HUNG_AFTER_MS = 90_000;

/** Sends requests and judges the responses: the same request must get the same bytes, unless a trouble excuses it. */
export class Witness {
  /** Headers of popular images that were received, by path. */
  readonly tags = new Map<string, Headers>();
  readonly visits: Visit[] = [];
  readonly #origin: string;
  readonly #troubles: readonly Trouble[];
  readonly #digests = new Map<string, string>();

  constructor(origin: string, troubles: readonly Trouble[]) {
    this.#origin = origin;
    this.#troubles = troubles;
  }

  async visit(shot: Shot): Promise<void> {
    const { purpose, method, path, render } = shot;
    const startedMs = epochMs();
    const exchange = await this.#ask(shot);
    const endedMs = epochMs();
    const code = readCode(exchange);
    const [verdict, reason = exchange.ending] = this.#judge(shot, exchange, code, [
      startedMs,
      endedMs,
    ]);
    this.visits.push({
      ...{ purpose, method, path, render, startedMs, tookMs: endedMs - startedMs },
      response: [exchange.status || '', code].join(' ').trim(),
      isHit: /^darkroom; hit/.test(exchange.headers.get('cache-status') ?? ''),
      ...{ verdict, reason },
    });
  }

  async #ask({ method, path, headers, manner }: Shot): Promise<Exchange> {
    const hangUp = new AbortController();
    const patienceMs = manner.kind === 'leaves' ? manner.afterMs : HUNG_AFTER_MS;
    const timer = setTimeout(() => hangUp.abort(), patienceMs);
    const chunks: Uint8Array[] = [];
    let response: Response | undefined;
    const report = (ending: Ending, failure = ''): Exchange => ({
      ...{ ending, failure, status: response?.status ?? 0, body: Buffer.concat(chunks) },
      headers: response?.headers ?? new Headers(),
    });
    try {
      response = await fetch(this.#origin + path, { method, headers, signal: hangUp.signal });
      let bytes = 0;
      for await (const chunk of response.body ?? []) {
        chunks.push(chunk);
        bytes += chunk.length;
        // Leaving the loop closes the connection.
        if (manner.kind === 'leaves body' && bytes >= manner.afterBytes) return report('left');
        if (manner.kind === 'dawdles') await sleep(manner.pauseMs);
      }
      return report('complete');
    } catch (error) {
      if (hangUp.signal.aborted) return report(manner.kind === 'leaves' ? 'left' : 'hung');
      const cause = error instanceof Error ? (error.cause ?? error) : error;
      return report(response === undefined ? 'no response' : 'broken', String(cause));
    } finally {
      clearTimeout(timer);
    }
  }

  /** Compares a response with the contract, given the troubles of its time. */
  #judge(
    shot: Shot,
    exchange: Exchange,
    code: string | undefined,
    [fromMs, toMs]: readonly [number, number],
  ): readonly [Verdict, reason?: string] {
    const { ending, failure, status } = exchange;
    const isExcusedBy = (what: Trouble['excuses']) => isExcused(this.#troubles, what, fromMs, toMs);
    const isOriginalLost = shot.needsOriginal && isExcusedBy('originals');
    const blameOriginals = (reason: string): readonly [Verdict, string] =>
      isOriginalLost ? ['originals failed', reason] : ['unexpected', reason];
    if (ending === 'hung' || ending === 'no response') {
      return ['unexpected', `${ending} ${failure}`.trim()];
    }
    if (ending === 'broken') return blameOriginals(`broken off: ${failure}`);
    const fault = ending === 'complete' ? this.#findFault(shot, exchange) : undefined;
    if (fault !== undefined) return ['unexpected', fault];
    if (status === 502 || (status === 504 && code !== 'TRANSFORM_TIMEOUT')) {
      return blameOriginals('an error of the origin');
    }
    // A request that waits for slow originals keeps its place in the queue.
    if (status === 503 && isOriginalLost) return ['originals failed'];
    if (status === 0 || shot.expected.includes(status)) return ['expected'];
    if (status === 503 && shot.render !== 'none' && isExcusedBy('renders')) return ['burst'];
    if (status === 503 && shot.render === 'heavy') return ['refused'];
    return ['unexpected', 'another status'];
  }

  /** Finds what is wrong with a whole response whose status may be right. */
  #findFault(shot: Shot, { status, headers, body }: Exchange): string | undefined {
    const { method, path, purpose } = shot;
    if (method !== 'GET') return body.length > 0 && method === 'HEAD' ? 'a body' : undefined;
    if (status !== 200 && status !== 206) return undefined;
    if (Number(headers.get('content-length')) !== body.length) return 'another Content-Length';
    if (shot.body !== undefined) {
      return shot.body.equals(body) ? undefined : 'other bytes than the original';
    }
    const etag = headers.get('etag');
    if (etag === null) return 'no ETag';
    if (purpose === 'popular image') this.tags.set(path, headers);
    const digest = createHash('sha1').update(etag).update(body).digest('base64');
    const before = this.#digests.get(path) ?? digest;
    this.#digests.set(path, before);
    return before === digest ? undefined : 'another body or ETag than before';
  }
}

function readCode({ status, ending, body }: Exchange): string | undefined {
  if (status < 400 || ending !== 'complete' || body.length === 0) return undefined;
  try {
    const error = JSON.parse(body.toString()) as { readonly code?: unknown } | null;
    return String(error?.code ?? 'no code');
  } catch {
    return 'no JSON';
  }
}
