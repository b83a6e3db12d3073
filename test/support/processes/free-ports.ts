import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

/**
 * Ports of 127.0.0.1 that are free, for servers that cannot be given port 0; the gap until one binds its port is
 * small, and a clash fails its start.
 */
export async function findFreePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  return Promise.all(
    servers.map(async (server) => {
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      server.close();
      await once(server, 'close');
      return port;
    }),
  );
}
