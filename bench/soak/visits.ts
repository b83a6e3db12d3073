import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Shot } from './requests.ts';
import type { Troubles } from './troubles.ts';

/** `originals failed`, `burst`: excused by a fault. `refused`: a heavy render rejected without a burst, rarely. */
type Verdict = 'expected' | 'originals failed' | 'burst' | 'refused' | 'unexpected';

/** A request and its outcome. */
export interface Visit extends Pick<Shot, 'purpose' | 'method' | 'path' | 'render'> {
  /** Milliseconds since 1970. */
  readonly startedMs: number;
  readonly tookMs: number;
  /** Status, and code of an error. */
  readonly response: string;
  readonly isHit: boolean;
  readonly verdict: Verdict;
  /** Reason why the response is unexpected, or its ending. */
  readonly reason: string;
}

interface Exchange {
  /**
   * `complete`: read to the last byte; `left`: the client hung up; `broken`: the server closed within a response;
   * `no response`: the server closed before a response; `hung`: no end within `HUNG_AFTER_MS`.
   */
  readonly ending: 'complete' | 'left' | 'broken' | 'no response' | 'hung';
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
  /** Error of the connection. */
  readonly failure: string;
}

/** Maximum duration of a request; a longer one counts as hung. */
const HUNG_AFTER_MS = 90_000;

/** Sends requests and checks responses: equal requests must get equal bytes, unless a fault excuses the difference. */
export class Witness {
  /** Headers of popular images that were received, by path. */
  readonly tags = new Map<string, Headers>();
  readonly visits: Visit[] = [];
  readonly #origin: string;
  readonly #troubles: Troubles;
  readonly #digests = new Map<string, string>();

  constructor(origin: string, troubles: Troubles) {
    this.#origin = origin;
    this.#troubles = troubles;
  }

  async visit(shot: Shot): Promise<void> {
    const { purpose, method, path, render } = shot;
    const startedMs = Date.now();
    const exchange = await send(this.#origin, shot);
    const { ending, status, headers } = exchange;
    const code = readCode(exchange);
    const [verdict, reason = ending] = this.#classify(shot, exchange, code, startedMs);
    this.visits.push({
      ...{ purpose, method, path, render, startedMs, tookMs: Date.now() - startedMs },
      response: [status || '', code].join(' ').trim(),
      isHit: /^darkroom; hit/.test(headers.get('cache-status') ?? ''),
      ...{ verdict, reason },
    });
  }

  /** Compares a response with the contract, and with the faults at the time. */
  #classify(
    shot: Shot,
    exchange: Exchange,
    code: string | undefined,
    startedMs: number,
  ): readonly [Verdict, reason?: string] {
    const { ending, failure, status } = exchange;
    const isExcused = (what: 'originals' | 'renders'): boolean =>
      this.#troubles.isExcused(what, startedMs, Date.now());
    const isOriginalLost = shot.needsOriginal && isExcused('originals');
    const excuseByOriginals = (reason: string): readonly [Verdict, string] =>
      isOriginalLost ? ['originals failed', reason] : ['unexpected', reason];
    if (ending === 'hung' || ending === 'no response') {
      return ['unexpected', `${ending} ${failure}`.trim()];
    }
    if (ending === 'broken') return excuseByOriginals(`truncated: ${failure}`);
    const fault = ending === 'complete' ? this.#findFault(shot, exchange) : undefined;
    if (fault !== undefined) return ['unexpected', fault];
    if (status === 502 || (status === 504 && code !== 'TRANSFORM_TIMEOUT')) {
      return excuseByOriginals('an error of the origin');
    }
    // A request that waits for slow originals keeps its place in the queue.
    if (status === 503 && isOriginalLost) return ['originals failed'];
    if (status === 0 || shot.expected.includes(status)) return ['expected'];
    if (status === 503 && shot.render !== 'none' && isExcused('renders')) return ['burst'];
    if (status === 503 && shot.render === 'heavy') return ['refused'];
    return ['unexpected', 'another status'];
  }

  /** Returns what is wrong with a complete response. */
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

async function send(origin: string, shot: Shot): Promise<Exchange> {
  const { method, path, headers, leavesAfterMs, leavesAfterBytes = Infinity, pauseMs } = shot;
  const hangUp = new AbortController();
  const timer = setTimeout(() => hangUp.abort(), leavesAfterMs ?? HUNG_AFTER_MS);
  const chunks: Uint8Array[] = [];
  let response: Response | undefined;
  const report = (ending: Exchange['ending'], failure = ''): Exchange => ({
    ...{ ending, failure, status: response?.status ?? 0, body: Buffer.concat(chunks) },
    headers: response?.headers ?? new Headers(),
  });
  try {
    response = await fetch(origin + path, { method, headers, signal: hangUp.signal });
    let bytes = 0;
    for await (const chunk of response.body ?? []) {
      chunks.push(chunk);
      bytes += chunk.length;
      // Leaving the loop cancels the body, which closes the connection.
      if (bytes >= leavesAfterBytes) return report('left');
      if (pauseMs !== undefined) await sleep(pauseMs);
    }
    return report('complete');
  } catch (error) {
    if (hangUp.signal.aborted) return report(leavesAfterMs === undefined ? 'hung' : 'left');
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    return report(response === undefined ? 'no response' : 'broken', String(cause));
  } finally {
    clearTimeout(timer);
  }
}

function readCode({ status, ending, body }: Exchange): string | undefined {
  if (status < 400 || ending !== 'complete' || body.length === 0) return undefined;
  return /"code":\s*"(\w+)"/.exec(body.toString())?.[1] ?? 'no code';
}
