import { once } from 'node:events';
import { createServer, type Server as HttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';

/** Starts a server on this machine; port 0 selects a free port. Returns the port. */
export async function listenLocally(server: Server, port = 0, host = '127.0.0.1'): Promise<number> {
  server.listen(port, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Closes a server and its connections; a second call does nothing. */
export async function closeServer(server: HttpServer): Promise<void> {
  if (!server.listening) return;
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
}

/** Returns free ports of 127.0.0.1, for servers that do not support port 0. Another process can take them first. */
export async function findFreePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(servers.map((server) => listenLocally(server)));
  await Promise.all(servers.map(closeServer));
  return ports;
}
