import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { listenUntilEnd } from '../at-end.ts';

/** Responds to a request; what a path has no handler for is a 404. */
export type SiteHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** Another site, on this machine: counts who comes. */
export class SiteServer {
  readonly handlers = new Map<string, SiteHandler>();
  /** Requests as they came, in order. */
  readonly requests: IncomingMessage[] = [];
  connections = 0;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer({ maxHeaderSize: 64 * 1024 }, (request, response) => {
      this.requests.push(request);
      const path = request.url?.split('?', 1)[0] ?? '';
      const handler = this.handlers.get(path);
      if (handler !== undefined) handler(request, response);
      else response.writeHead(404).end();
    });
    this.#server.on('connection', () => {
      this.connections += 1;
    });
  }

  /**
   * Starts one until the end of the test, or of the file's tests.
   *
   * @param host an address of this machine
   */
  static async use(host = '127.0.0.1'): Promise<SiteServer> {
    const site = new SiteServer();
    await listenUntilEnd(site.#server, host);
    return site;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Leads elsewhere, in bytes, which is how servers send what is not ASCII. */
  redirect(path: string, location: string): void {
    this.handlers.set(path, (_request, response) => {
      const bytes = Buffer.from(location).toString('latin1');
      response.writeHead(302, { location: bytes }).end('a body that nobody reads');
    });
  }

  /** Serves a body at a path. */
  serve(path: string, body: Uint8Array, headers: Readonly<Record<string, string>> = {}): void {
    this.handlers.set(path, (_request, response) => {
      response.writeHead(200, { 'content-length': body.length, ...headers }).end(body);
    });
  }

  /** The same, with ranges, as a site should. */
  serveRanges(path: string, body: Buffer, headers: Readonly<Record<string, string>> = {}): void {
    const own = { etag: '"one"', ...headers };
    this.handlers.set(path.split('?', 1)[0] ?? '', ({ headers: asked }, response) => {
      const [, first = '', last = ''] = /^bytes=(\d+)-(\d*)$/.exec(asked.range ?? '') ?? [];
      const applies = asked['if-range'] === undefined || asked['if-range'] === own.etag;
      const end = Math.min(last === '' ? Infinity : Number(last), body.length - 1);
      if (first === '' || !applies || Number(first) > end) {
        response.writeHead(200, { ...own, 'content-length': body.length }).end(body);
        return;
      }
      const part = body.subarray(Number(first), end + 1);
      const range = `bytes ${first}-${end}/${body.length}`;
      const length = { 'content-length': part.length, 'content-range': range };
      response.writeHead(206, { ...own, ...length }).end(part);
    });
  }

  /** Closes the connections that clients keep. */
  dropConnections(): void {
    this.#server.closeAllConnections();
  }
}
