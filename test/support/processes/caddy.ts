import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { atEnd } from '../at-end.ts';
import { useTemporaryDirectory } from '../temporary-directory.ts';
import { findFreePorts } from './local-server.ts';

/**
 * Starts Caddy with the recommended Caddyfile until the end of the test or test file. Only hosts, the upstream's port and
 * global options are replaced, and each must be found. The host at `mediaPort` serves Darkroom below `/media/`.
 */
export async function useCaddy(upstreamPort: number) {
  const [port = 0, mediaPort = 0] = await findFreePorts(2);
  const { path: directory, put } = await useTemporaryDirectory();
  const replacements = {
    'cdn.example.org, static.example.org {': `http://127.0.0.1:${port} {`,
    'chat.example.org {': `http://127.0.0.1:${mediaPort} {`,
    'reverse_proxy 127.0.0.1:3000 {': `reverse_proxy 127.0.0.1:${upstreamPort} {`,
  };
  let text = readFileSync('deploy/caddy/Caddyfile', 'utf8');
  for (const [expected, replacement] of Object.entries(replacements)) {
    if (!text.includes(expected)) throw new Error(`"${expected}" is missing in the Caddyfile`);
    text = text.replace(expected, replacement);
  }
  await put('Caddyfile', `{\n\tadmin off\n\tauto_https off\n}\n${text}`);
  const child = spawn('caddy', ['run', '--config', join(directory, 'Caddyfile')], {
    env: { PATH: process.env.PATH ?? '', HOME: directory },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const kill = (): void => void child.kill('SIGTERM');
  process.once('exit', kill);
  const ended = new Promise<void>((resolve) => child.once('close', resolve));
  atEnd(async () => {
    kill();
    await ended;
    process.off('exit', kill);
  });
  let log = '';
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      log += chunk;
      // Caddy listens before it reports its configuration as served.
      if (log.includes('serving initial configuration')) resolve();
    });
    child.once('error', reject);
    child.once('close', () => reject(new Error(`Caddy did not start: ${log}`)));
  });
  return { port, mediaPort };
}
