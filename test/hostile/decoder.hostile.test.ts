import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { getuid } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { listenLocally } from '../support/processes/local-server.ts';
import {
  findProcessesOf,
  hasCompiler,
  shareMaliciousDecoder,
} from '../support/processes/video-decoders.ts';
import { usePools } from '../support/processes/worker-pool.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';
import { readHarm } from './attack-table.ts';

const start = usePools();
const isRoot = getuid?.() === 0;

/** Timeout for a process to start or exit on a busy machine. */
const soon = { timeout: 20_000 };

/** Returns a PATH with only these programs. */
async function pathOf(...programs: readonly string[]): Promise<string> {
  const { path } = await useTemporaryDirectory();
  for (const program of programs) symlinkSync(`/usr/bin/${program}`, join(path, program));
  return path;
}

/** Runs all attacks; returns whether each did harm, by its name in the document. */
async function attackAll(request: (attack: string) => Promise<string>) {
  const connect = vi.fn();
  const server = createServer(connect);
  onTestFinished(() => void server.close());
  const port = await listenLocally(server);
  const decoy = spawn('sleep', ['60'], { env: { SECRET: 'a secret' } });
  onTestFinished(() => void decoy.kill('SIGKILL'));
  await once(decoy, 'spawn');
  const does = async (attack: string): Promise<boolean> =>
    (await request(attack)).startsWith('done');
  const harm: Record<string, boolean> = {
    'start processes': (await does('process')) || (await does('fork')) || (await does('clone3')),
    'start threads': await does('thread'),
    'open Unix sockets': await does('unix'),
    'read files of the system': await does('read /etc/passwd'),
    'see processes': await does(`read /proc/${decoy.pid}/cmdline`),
    "read the service's environment and memory": await does(`read /proc/${decoy.pid}/environ`),
    'create files': await does(`write /tmp/of-a-decoder-${process.pid}`),
  };
  await request(`socket ${port}`);
  harm['use the network'] = connect.mock.calls.length > 0;
  const exited = once(decoy, 'exit');
  await request(`kill ${decoy.pid}`);
  await Promise.race([exited, sleep(1_000)]);
  harm['stop the service'] = decoy.exitCode !== null || decoy.signalCode !== null;
  return harm;
}

describe.skipIf(!hasCompiler)('(gcc is installed) a compromised video decoder', () => {
  const decoder = shareMaliciousDecoder();

  test.each([
    ['whole', false, ['bwrap', 'setpriv', 'nice', 'env', 'ldd']],
    ['setpriv', true, ['setpriv', 'nice', 'env']],
    ['unconfined', true, ['nice', 'env']],
  ])('does only the documented harm: %s', async (confinement, mayBeWeaker, programs) => {
    const { renderer, sayByRanges } = await start({
      videoDecoder: { ...decoder, mayBeWeaker },
      environment: { PATH: await pathOf(...programs) },
    });
    const isWhole = confinement === 'whole';
    const sandbox = isWhole ? 'bubblewrap' : confinement;
    expect(await renderer.videoSupport).toMatchObject({ isWhole, sandbox });
    const harm = await attackAll((attack) => sayByRanges(`decode 1 ${attack}`));
    expect(harm).toEqual(readHarm('whole', confinement, isRoot));
  });

  test('is probed on a busy machine, although it exits without reading its input', async () => {
    const environment = { PATH: await pathOf('setpriv', 'nice', 'env') };
    const options = { videoDecoder: { ...decoder, mayBeWeaker: true }, environment };
    const pools = await Promise.all(Array.from({ length: 12 }, () => start(options)));
    for (const { renderer } of pools)
      expect(await renderer.videoSupport).toMatchObject({
        sandbox: 'setpriv',
        refusals: ['bubblewrap: bwrap is not installed'],
      });
  });

  test.each([
    ['whole', ['bwrap', 'setpriv', 'ldd']],
    ['setpriv', ['setpriv']],
    ['unconfined', []],
  ])('ends when the service is killed: %s', async (_, programs) => {
    const path = await pathOf('nice', 'env', ...programs);
    const file = 'test/hostile/takeover/decode-forever.mjs';
    const service = spawn(process.execPath, [file, decoder.program, path], { stdio: 'inherit' });
    onTestFinished(() => void service.kill('SIGKILL'));
    await expect.poll(() => findProcessesOf(decoder.program).length, soon).toBe(1);
    service.kill('SIGKILL');
    await expect.poll(() => findProcessesOf(decoder.program), soon).toEqual([]);
  });
});
