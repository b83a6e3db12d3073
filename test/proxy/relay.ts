import { once } from 'node:events';
import {
  Agent,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import { defer } from '../support/deferred.ts';
import { closeServer, listenLocally } from '../support/processes/local-server.ts';

/** Of one connection alone (RFC 9110 §7.6.1). */
const HOP_BY_HOP: ReadonlySet<string> = new Set(['connection', 'keep-alive']);

/** One request that reached Darkroom, and what came of it. */
export interface Forwarded {
  readonly method: string;
  /** Path and query, as nginx sent them. */
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  /** 0 until the response's head has come. */
  status: number;
  /** Whether Darkroom's Server-Timing has a render. */
  isRendered: boolean;
  bodyBytes: number;
}

/** A wire between nginx and Darkroom that counts what goes through it, and can be cut. */
export class Relay {
  readonly requests: Forwarded[] = [];
  readonly #server: Server;
  readonly #agent = new Agent({ keepAlive: true });
  #port = 0;
  #targetPort: number;
  #held: Promise<void> = Promise.resolve();
  #scriptedStatus: number | undefined;

  constructor(targetPort: number) {
    this.#targetPort = targetPort;
    this.#server = createServer((incoming, outgoing) => {
      this.#forward(incoming, outgoing).catch(() => outgoing.destroy());
    });
  }

  /** Starts to listen; again on the same port after `cut`. */
  async open(targetPort: number = this.#targetPort): Promise<number> {
    this.#targetPort = targetPort;
    this.#port = await listenLocally(this.#server, this.#port);
    return this.#port;
  }

  /** As if Darkroom's machine had no process on its port: connections are refused. */
  async cut(): Promise<void> {
    this.#agent.destroy();
    await closeServer(this.#server);
  }

  /** Holds all requests back, once they have been counted, until the function returned is called. */
  hold(): () => void {
    const { promise, resolve } = defer<void>();
    this.#held = promise;
    return resolve;
  }

  /** Responds with an error that Darkroom cannot be brought to on demand; `undefined` ends it. */
  respondWith(status: number | undefined): void {
    this.#scriptedStatus = status;
  }

  /** Requests for a path, whatever their query. */
  requestsOf(path: string): readonly Forwarded[] {
    return this.requests.filter(({ target }) => target.split('?')[0] === path);
  }

  async #forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = '', url: target = '', headers } = incoming;
    const entry: Forwarded = {
      method,
      target,
      headers,
      status: 0,
      isRendered: false,
      bodyBytes: 0,
    };
    this.requests.push(entry);
    await this.#held;
    if (this.#scriptedStatus !== undefined) {
      entry.status = this.#scriptedStatus;
      outgoing.writeHead(entry.status, { 'Cache-Control': 'no-store', 'Retry-After': '1' });
      outgoing.end(JSON.stringify({ code: 'SCRIPTED', message: 'The relay says so.' }));
      return;
    }
    const forwarded = request({
      ...{ host: '127.0.0.1', port: this.#targetPort, agent: this.#agent },
      ...{ method, path: target, headers },
    });
    forwarded.on('error', () => outgoing.destroy());
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) forwarded.destroy();
    });
    if (method === 'PUT') incoming.pipe(forwarded);
    else forwarded.end();
    const [response] = (await once(forwarded, 'response')) as [IncomingMessage];
    entry.status = response.statusCode ?? 0;
    entry.isRendered = /\brender\b/.test(String(response.headers['server-timing'] ?? ''));
    outgoing.writeHead(entry.status, withoutHops(response.rawHeaders));
    response.on('data', (chunk: Buffer) => {
      entry.bodyBytes += chunk.length;
    });
    response.on('error', () => outgoing.destroy());
    response.pipe(outgoing);
  }
}

function withoutHops(rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter((_, index) => {
    const name = rawHeaders[index - (index % 2)] ?? '';
    return !HOP_BY_HOP.has(name.toLowerCase());
  });
}
