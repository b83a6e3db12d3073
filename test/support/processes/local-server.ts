import { once } from 'node:events';
import { createServer, type Server as HttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';

/** Has a server listen on this machine, on a free port unless one is named, and returns the port. */
export async function listenLocally(server: Server, port = 0, host = '127.0.0.1'): Promise<number> {
  server.listen(port, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Ends a server, and the connections to it; a second call does nothing. */
export async function closeServer(server: HttpServer): Promise<void> {
  if (!server.listening) return;
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
}

/**
 * Ports of 127.0.0.1 that are free, for servers that cannot be given port 0; the gap until one binds its port is
 * small, and a clash fails its start.
 */
export async function findFreePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(servers.map((server) => listenLocally(server)));
  await Promise.all(servers.map(closeServer));
  return ports;
}
