import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { atEnd } from '../at-end.ts';
import { listenLocally } from '../processes/local-server.ts';

/** What a server does with a connection whose request has come: it writes whatever it likes. */
export type Behaviour = (socket: Socket, request: string) => void;

/** A server that speaks HTTP as it likes, byte by byte: each path is a behaviour. */
export class HostileServer {
  /** By path; what has none hangs. */
  readonly behaviours = new Map<string, Behaviour>();
  /** Heads of requests, in order. */
  readonly requests: string[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('error', () => undefined);
      let head = '';
      socket.on('data', (chunk) => {
        head += chunk.toString('latin1');
        if (!head.includes('\r\n\r\n')) return;
        const request = head;
        head = '';
        this.requests.push(request);
        this.behaviours.get(request.split(' ')[1] ?? '')?.(socket, request);
      });
    });
  }

  /** Starts one until the end of the test, or of the file's tests. */
  static async use(): Promise<HostileServer> {
    const site = new HostileServer();
    await listenLocally(site.#server);
    atEnd(async () => {
      for (const socket of site.#sockets) socket.destroy();
      site.#server.close();
      await once(site.#server, 'close');
    });
    return site;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get openConnections(): number {
    return this.#sockets.size;
  }
}

/** Writes a piece at a time, the first one at once; of a text, a character. */
export function trickle(
  socket: Socket,
  pieces: Iterable<string | Uint8Array>,
  pauseMs: number,
): void {
  const rest = pieces[Symbol.iterator]();
  const write = (): void => {
    const { done, value } = rest.next();
    if (socket.destroyed || done) clearInterval(timer);
    else socket.write(value);
  };
  const timer = setInterval(write, pauseMs);
  timer.unref();
  write();
}
