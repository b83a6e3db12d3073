import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Has a server listen on a free port of 127.0.0.1, and prints which; ends it with SIGTERM. */
export function announce(server: Server): void {
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`listens on http://127.0.0.1:${port}\n`);
  });
  process.on('SIGTERM', () => process.exit());
}
