import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { runDarkroom, startDarkroom } from '../support/processes/command-line.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const commands = ['serve', 'check', 'put', 'render', 'sign'];

describe('the command line', () => {
  test('shows its commands, and what each of them needs', async () => {
    const { status, stdout, stderr } = await runDarkroom(['--help']);
    expect(status).toBe(0);
    expect(stderr).toBe('');
    for (const name of commands)
      expect(stdout.toString()).toMatch(new RegExp(`^ {2}${name} `, 'm'));
    for (const name of commands) {
      const help = await runDarkroom([name, '--help']);
      expect(help.status, name).toBe(0);
      expect(help.stdout.toString()).toMatch(new RegExp(`^Usage: darkroom ${name}`, 'm'));
      // A terminal of 80 columns is enough.
      for (const line of help.stdout.toString().split('\n')) expect(line.length).toBeLessThan(81);
    }
  });

  test('shows its version', async () => {
    const { status, stdout } = await runDarkroom(['--version']);
    expect([status, stdout.toString()]).toEqual([0, `darkroom ${version}\n`]);
  });

  test.each([
    [[], 'which command?; see darkroom --help'],
    [['polish'], 'there is no command "polish"; see darkroom --help'],
    [['constructor'], 'there is no command "constructor"; see darkroom --help'],
    [['check', '--loudly'], 'there is no option --loudly; see darkroom --help'],
    [['render'], 'render needs URL-PATH and OUTPUT-FILE; see darkroom render --help'],
    [['put', 'avatars/1/ab12'], 'put needs FILE; see darkroom put --help'],
    [['sign'], 'sign needs URL; see darkroom sign --help'],
    [['check', 'all'], 'check has no use for "all"; see darkroom check --help'],
    [['--help=1'], 'there is no option --help=1; see darkroom --help'],
  ])('refuses %j', async (args, message) => {
    const { status, stdout, stderr } = await runDarkroom(args);
    expect([status, stdout.toString(), stderr]).toEqual([64, '', `darkroom: ${message}\n`]);
  });

  test('where nothing was built, says what to do', async () => {
    const { path: folder } = await useTemporaryFolder();
    cpSync('bin', join(folder, 'bin'), { recursive: true });
    const run = spawnSync(process.execPath, [join(folder, 'bin/darkroom.mjs'), 'check']);
    expect([run.status, run.stderr.toString()]).toEqual([
      1,
      'Darkroom is not built yet. In its folder, run: npm ci && npm run build\n',
    ]);
  });

  test('npx finds it in a clone', () => {
    const run = spawnSync('npx', ['--offline', 'darkroom', '--version'], { encoding: 'utf8' });
    expect([run.stdout, run.status]).toEqual([`darkroom ${version}\n`, 0]);
  });

  test('a configuration that is not valid ends every command as it ends the service', async () => {
    const environment = { PORT: 'many', WORKERS: '-1', ADMIN_PORT: '1', ADMIN_TOKEN: 'short' };
    for (const args of [['serve'], ['render', '/emojis/1.webp', '-'], ['put', 'emojis/1', '-']]) {
      const { status, stdout, stderr } = await runDarkroom(args, { environment });
      expect(status, args[0]).toBe(78);
      expect(stdout.toString()).toBe('');
      expect(stderr).toMatch(/PORT: expected .* but received "many"/);
      expect(stderr).toMatch(/WORKERS: expected .* but received "-1"/);
      expect(stderr).not.toContain('short');
    }
  });
});

test('darkroom serve is the service, which stops on a signal', async () => {
  const running = startDarkroom(['serve'], { PORT: '0', WORKERS: '1' });
  onTestFinished(() => void running.child.kill('SIGKILL'));
  const links = () => running.stderr().match(/http:\S+\?\S+/g) ?? [];
  await expect.poll(() => links().length || running.stderr()).toBe(3);
  for (const link of links()) expect((await fetch(link)).status).toBe(200);
  running.child.kill('SIGTERM');
  expect(await running.ended).toBe(0);
});
