import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { atEnd } from '../at-end.ts';
import { listenLocally } from '../processes/local-server.ts';

/** Handles a connection after its request has arrived; can write any bytes. */
export type Behaviour = (socket: Socket, request: string) => void;

/** Starts a server that can violate HTTP in any way, until the end of the test or file. */
export async function useHostileServer() {
  /** By path; any other path hangs. */
  const behaviours = new Map<string, Behaviour>();
  /** Heads of requests, in order. */
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    let head = '';
    socket.on('data', (chunk) => {
      head += chunk.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      const request = head;
      head = '';
      requests.push(request);
      behaviours.get(request.split(' ')[1] ?? '')?.(socket, request);
    });
  });
  const port = await listenLocally(server);
  atEnd(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  return { port, behaviours, requests, sockets };
}

/** Writes one piece, or one character of a text, at each interval, and the first one at once. */
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
