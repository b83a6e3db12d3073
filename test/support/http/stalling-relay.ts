import { connect, createServer, type Socket } from 'node:net';
import { listenLocally } from '../processes/local-server.ts';

/**
 * Passes bytes on between a client and a port of this machine, and stops reading the port's on demand: needed where
 * a client cannot stop by itself, since one of TLS has to read to live.
 */
export async function startStallingRelay(target: number) {
  const sockets: Socket[] = [];
  let isStalled = false;
  const relay = createServer((client) => {
    const server = connect(target, '127.0.0.1');
    sockets.push(client, server);
    client.on('error', () => undefined);
    client.on('data', (chunk) => server.write(chunk));
    server.on('data', (chunk) => {
      client.write(chunk);
      if (isStalled) server.pause();
    });
    server.on('error', () => undefined);
    server.on('close', () => client.destroy());
  });
  return {
    port: await listenLocally(relay),
    /** Reads nothing more of what the server sends; what the client sends still goes through. */
    stall: (): void => {
      isStalled = true;
    },
    close: (): void => {
      relay.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
