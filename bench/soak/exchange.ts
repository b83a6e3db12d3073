import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
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

/** What a client asks. */
export interface Question {
  readonly method: 'GET' | 'HEAD' | 'OPTIONS' | 'POST' | 'DELETE';
  /** Path and query, sent as they are. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly manner: Manner;
}

/** How it went. */
export interface Exchange {
  /** Since 1970. */
  readonly startedMs: number;
  /** From the request to the last byte, or to the end of it all. */
  readonly totalMs: number;
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /**
   * `complete`: to the last byte; `left`: the client hung up; `broken`: the server did, within a response;
   * `unanswered`: the server did, before one; `hung`: nothing happened for a long time.
   */
  readonly ending: 'complete' | 'left' | 'broken' | 'unanswered' | 'hung';
  /** What was reported, where the server hung up. */
  readonly failure: string | undefined;
}

/** After this long without an end, a request counts as hung, in milliseconds. */
const HUNG_AFTER_MS = 90_000;

/**
 * Connections that have rested so long are not used again, in milliseconds. A server may close one just as a
 * request is sent over it (RFC 9112 §9.5), so a client has to give up first; so does nginx, with this default.
 */
const KEEP_IDLE_MS = 60_000;

const UNANSWERED = { status: undefined, headers: {} } as const;

/** One client, or many that share their connections. */
export class HttpClient {
  readonly #agent = new Agent({ keepAlive: true, timeout: KEEP_IDLE_MS });
  readonly #server: { readonly agent: Agent; readonly host: string; readonly port: number };

  /** @param origin scheme, host and port of the server */
  constructor(origin: string) {
    const { hostname, port } = new URL(origin);
    this.#server = { agent: this.#agent, host: hostname, port: Number(port) };
  }

  /** Asks, and reports how it went; never fails itself. */
  ask({ method, path, headers, manner }: Question): Promise<Exchange> {
    return new Promise((resolve) => {
      const startedMs = epochMs();
      const chunks: Buffer[] = [];
      let head: Pick<Exchange, 'status' | 'headers'> = UNANSWERED;
      let ending: Exchange['ending'] | undefined;
      const asked = request({ ...this.#server, method, path, headers });
      const settle = (how: Exchange['ending'], failure?: string): void => {
        if (ending !== undefined) return;
        ending = how;
        for (const timer of timers) clearTimeout(timer);
        if (how !== 'complete') asked.destroy();
        const totalMs = epochMs() - startedMs;
        resolve({ startedMs, totalMs, ...head, body: Buffer.concat(chunks), ending, failure });
      };
      const timers = [setTimeout(() => settle('hung'), HUNG_AFTER_MS)];
      if (manner.kind === 'leaves') timers.push(setTimeout(() => settle('left'), manner.afterMs));
      asked.on('error', (error) =>
        settle(head === UNANSWERED ? 'unanswered' : 'broken', error.message),
      );
      asked.once('response', (response) => {
        const { statusCode: status, headers: received } = response;
        head = { status, headers: received };
        response.once('error', (error) => settle('broken', error.message));
        response.once('end', () => settle('complete'));
        receive(response, manner, chunks, () => settle('left'));
      });
      asked.end();
    });
  }

  /** Hangs up every connection. */
  close(): void {
    this.#agent.destroy();
  }
}

/** A plain GET. */
export function get(path: string, headers: Readonly<Record<string, string>> = {}): Question {
  return { method: 'GET', path, headers, manner: { kind: 'reads' } };
}

function receive(
  response: IncomingMessage,
  manner: Manner,
  chunks: Buffer[],
  leave: () => void,
): void {
  let received = 0;
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    received += chunk.length;
    if (manner.kind === 'leaves body' && received >= manner.afterBytes) leave();
    if (manner.kind === 'dawdles') {
      response.pause();
      setTimeout(() => response.resume(), manner.pauseMs);
    }
  });
}
