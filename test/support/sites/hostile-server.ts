import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { atEnd } from '../at-end.ts';
import { listenLocally } from '../processes/local-server.ts';

/** What a server does with a connection whose request has come: it writes whatever it likes. */
export type Behaviour = (socket: Socket, request: string) => void;

/**
 * Starts a server that speaks HTTP as it likes, byte by byte, until the end of the test, or of the file's tests: each path
 * is a behaviour.
 */
export async function useHostileServer() {
  /** By path; what has none hangs. */
  const behaviours = new Map<string, Behaviour>();
  /** Heads of requests, in order. */
  const requests: string[] = [];
  /** Open connections. */
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
