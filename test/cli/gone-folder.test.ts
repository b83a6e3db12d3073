import { closeSync, mkdirSync, mkdtempSync, openSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runDarkroom } from '../support/processes/command-line.ts';

/** A path at which there is a folder, and whose real path is gone (Linux, proc(5)). */
function goneFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-gone-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'originals'));
  const held = openSync(join(folder, 'originals'), 'r');
  onTestFinished(() => closeSync(held));
  rmdirSync(join(folder, 'originals'));
  return `/proc/${process.pid}/fd/${held}`;
}

test.each([
  [
    ['render', '/avatars/0.png', '/dev/null'],
    /^the service cannot start; see darkroom check: ENOENT/,
  ],
  [
    ['put', 'avatars/1/ab12', 'fixtures/originals/avatars/1/ab12'],
    /^the (service cannot start|storage cannot be read); see darkroom check: ENOENT/,
  ],
  [['put', 'attachments/1/2/x', 'README.md'], /^the storage cannot be read; .*ENOENT/],
])('darkroom %j, of a folder that has just gone, says so in a line', async (args, reason) => {
  const { status, stdout, stderr } = await runDarkroom(args, {
    environment: { STORAGE_DIR: goneFolder() },
  });
  expect([status, stdout.toString()]).toEqual([1, '']);
  const [, text] = /^darkroom: ([^\n]*)\n$/.exec(stderr) ?? [];
  expect(text, stderr).toMatch(reason);
});

test('darkroom check tells of it as of any fault', async () => {
  const { status, stdout, stderr } = await runDarkroom(['check'], {
    environment: { STORAGE_DIR: goneFolder() },
  });
  expect([status, stderr]).toEqual([1, '']);
  expect(stdout.toString()).toMatch(/^FAULT {2}storage: folder \S+ cannot be opened: ENOENT/m);
});
