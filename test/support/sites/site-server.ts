import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { listenUntilEnd } from '../at-end.ts';

type Headers = Readonly<Record<string, string>>;

/** Responds to a request; a path without handler returns 404. */
export type SiteHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** Starts another site on an address of this machine until the end of the test or file. */
export async function useSiteServer(host = '127.0.0.1') {
  const handlers = new Map<string, SiteHandler>();
  const requests: IncomingMessage[] = [];
  let connections = 0;
  const open = new Set<Socket>();
  let maxOpen = 0;
  const server = createServer({ maxHeaderSize: 64 * 1024 }, (request, response) => {
    requests.push(request);
    const handler = handlers.get(request.url?.split('?', 1)[0] ?? '');
    if (handler !== undefined) handler(request, response);
    else response.writeHead(404).end();
  });
  server.on('connection', (socket) => {
    connections += 1;
    open.add(socket);
    maxOpen = Math.max(maxOpen, open.size);
    socket.once('close', () => open.delete(socket));
  });
  const port = await listenUntilEnd(server, host);
  return {
    port,
    handlers,
    requests,
    countConnections: () => connections,
    /** Maximum number of concurrent connections, as the site sees them. */
    countMaxOpen: () => maxOpen,
    /** Redirects a path. Servers send a location that is not ASCII as raw UTF-8. */
    redirect: (path: string, location: string): void => {
      handlers.set(path, (_request, response) => {
        const bytes = Buffer.from(location).toString('latin1');
        response.writeHead(302, { location: bytes }).end('ignored');
      });
    },
    serve: (path: string, body: Uint8Array, headers: Headers = {}): void => {
      handlers.set(path, (_request, response) => {
        response.writeHead(200, { 'content-length': body.length, ...headers }).end(body);
      });
    },
    /** Serves a body with ranges and `If-Range`. */
    serveRanges: (path: string, body: Buffer, headers: Headers = {}): void => {
      const own = { etag: '"one"', ...headers };
      handlers.set(path.split('?', 1)[0] ?? '', ({ headers: requested }, response) => {
        const [, first = '', last = ''] = /^bytes=(\d+)-(\d*)$/.exec(requested.range ?? '') ?? [];
        const applies = requested['if-range'] === undefined || requested['if-range'] === own.etag;
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
    },
    /** Closes all connections. */
    dropConnections: () => server.closeAllConnections(),
  };
}
