import { setTimeout as sleep } from 'node:timers/promises';
import { epochMs } from '../harness/load.ts';

/** How a client behaves while its response comes. */
export type Manner =
  | { readonly kind: 'reads' }
  /** Hangs up some time after it has asked, whatever has come by then. */
  | { readonly kind: 'leaves'; readonly afterMs: number }
  /** Hangs up when so much of the body has come. */
  | { readonly kind: 'leaves body'; readonly afterBytes: number }
  /** Takes a chunk of the body, then a rest. */
  | { readonly kind: 'dawdles'; readonly pauseMs: number };

export interface Question {
  readonly method: 'GET' | 'HEAD' | 'OPTIONS' | 'POST' | 'DELETE';
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly manner: Manner;
}

/**
 * `complete`: to the last byte; `left`: the client hung up; `broken`: the server did, within a response;
 * `unanswered`: the server did, before one; `hung`: it did not end for a long time.
 */
type Ending = 'complete' | 'left' | 'broken' | 'unanswered' | 'hung';

export type Exchange = Awaited<ReturnType<typeof ask>>;

/** After this long without an end, a request counts as hung, in milliseconds. */
const HUNG_AFTER_MS = 90_000;

/** Asks, and reports how it went; never fails itself. */
export async function ask(origin: string, { method, path, headers, manner }: Question) {
  const startedMs = epochMs();
  const hangUp = new AbortController();
  const patienceMs = manner.kind === 'leaves' ? manner.afterMs : HUNG_AFTER_MS;
  const timer = setTimeout(() => hangUp.abort(), patienceMs);
  const chunks: Uint8Array[] = [];
  let response: Response | undefined;
  /** @param failure what was reported, where the server hung up */
  const report = (ending: Ending, failure?: string) => ({
    /** Since 1970. */
    startedMs,
    endedMs: epochMs(),
    status: response?.status,
    received: response?.headers ?? new Headers(),
    body: Buffer.concat(chunks),
    ending,
    failure,
  });
  try {
    response = await fetch(origin + path, { method, headers, signal: hangUp.signal });
    let bytes = 0;
    for await (const chunk of response.body ?? []) {
      chunks.push(chunk);
      bytes += chunk.length;
      // To stop reading is to hang up.
      if (manner.kind === 'leaves body' && bytes >= manner.afterBytes) return report('left');
      if (manner.kind === 'dawdles') await sleep(manner.pauseMs);
    }
    return report('complete');
  } catch (error) {
    if (hangUp.signal.aborted) return report(manner.kind === 'leaves' ? 'left' : 'hung');
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    return report(response === undefined ? 'unanswered' : 'broken', String(cause));
  } finally {
    clearTimeout(timer);
  }
}
