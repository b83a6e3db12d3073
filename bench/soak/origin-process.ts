import { startLocalS3 } from '../../test/support/local-s3.ts';
import { FaultRelay } from './fault-relay.ts';
import type { OriginCommand, OriginReport } from './origin.ts';
import { listOriginals } from './originals.ts';

/** Entry of a child process: a real S3 server that holds the originals, and the relay before it. */
async function main(): Promise<void> {
  const s3 = await startLocalS3();
  const relay = new FaultRelay(s3.port);
  await relay.listen();
  process.on('disconnect', () => void s3.close().finally(() => process.exit()));
  for (const original of Object.values(listOriginals()).flat()) {
    await s3.put(original.key, original.read());
  }
  process.on('message', (command: OriginCommand) => {
    const done = command.kind === 'calm' ? relay.calm() : relay.strike(command.wave);
    void done.then(() => report({ kind: 'done' }));
  });
  report({ kind: 'ready', endpoint: relay.endpoint, bucket: s3.bucket });
}

function report(message: OriginReport): void {
  if (process.connected) process.send?.(message);
}

// Signals to the whole group are for the parent to answer; this process ends, tidily, when it does.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);
await main();
