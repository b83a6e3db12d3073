import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { startFlags } from '../support/processes/start-flags.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

const unit = readFileSync('deploy/systemd/darkroom@.service', 'utf8');
const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;

/** What systemd says of a unit; nothing where it is all well. */
async function verify(text: string): Promise<string> {
  const { path, put } = await useTemporaryFolder();
  const file = join(path, 'darkroom@.service');
  // Node need not be where systemd looks for it.
  await put('darkroom@.service', text.replace('ExecStart=node ', `ExecStart=${process.execPath} `));
  const { stdout, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
  return stdout + stderr;
}

/** The variables of a file as systemd reads it. */
function readEnvironment(name: string): Record<string, string> {
  const lines = readFileSync(`deploy/systemd/${name}.env`, 'utf8').split('\n');
  return Object.fromEntries(
    lines
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => line.split('=') as [string, string]),
  );
}

const settingOf = (name: string): string | undefined =>
  new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1];

describe('the systemd unit', () => {
  test.skipIf(!hasSystemd)('passes systemd-analyze verify', async () => {
    expect(await verify(unit)).toBe('');
    expect(await verify(unit.replace('RestartSec=', 'RestartSecs='))).toContain('RestartSecs');
  });

  test('starts Node with the flags of npm start', () => {
    expect(settingOf('ExecStart')).toBe(`node ${startFlags.join(' ')} dist/main.js`);
  });

  test.each([
    ['blue', 3000, 9090],
    ['green', 3001, 9091],
  ])('%s has settings that the service accepts', (name, port, adminPort) => {
    const environment = { ...readEnvironment('darkroom'), ...readEnvironment(name) };
    // Folders that exist here.
    const folders = { STORAGE_DIR: 'fixtures/originals', RESULT_STORE_DIR: 'docs' };
    const { listen, admin, shutdown } = readConfig({ ...environment, ...folders });
    expect([listen.port, admin?.listen.port]).toEqual([port, adminPort]);
    expect(Number(settingOf('TimeoutStopSec')) * 1000).toBeGreaterThan(shutdown.graceMs);
  });
});
