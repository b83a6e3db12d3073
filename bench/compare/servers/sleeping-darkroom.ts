import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/* The compiled service, as its environment says, with workers that sleep. */
const from = (path: string): string => pathToFileURL(resolve('dist', path)).href;
const { createApp } = (await import(from('app.js'))) as typeof import('../../../src/app.ts');
const { readConfig } = (await import(
  from('config/config.js')
)) as typeof import('../../../src/config/config.ts');

const config = readConfig(process.env);
const ignore = (): void => undefined;
const app = await createApp(config, {
  log: { info: ignore, warn: ignore, error: console.error },
  workerFiles: { workerFile: new URL('sleeping-worker.js', import.meta.url) },
});
await app.started;
await app.server.listen(config.listen);
process.on('SIGTERM', () => process.exit());
