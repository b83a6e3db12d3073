import type { Server } from 'node:http';

/** Has a server listen where `startServer` told it to; ends it with SIGTERM. */
export function serve(server: Server): void {
  server.listen(Number(process.env.PORT), process.env.HOST);
  process.on('SIGTERM', () => process.exit());
}
