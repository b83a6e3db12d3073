import { closeSync, mkdirSync, openSync, readdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runDarkroom } from '../support/processes/command-line.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

const MEBIBYTE = 1024 * 1024;

/** A path at which there is a folder, and whose real path is gone (Linux, proc(5)). */
async function makeGoneFolder(): Promise<string> {
  const { path } = await useTemporaryFolder();
  const folder = join(path, 'originals');
  mkdirSync(folder);
  const held = openSync(folder, 'r');
  onTestFinished(() => closeSync(held));
  rmdirSync(folder);
  return `/proc/${process.pid}/fd/${held}`;
}

test.each([
  [
    ['render', '/avatars/0.png', '/dev/null'],
    /^darkroom: the service cannot start; see darkroom check: ENOENT[^\n]*\n$/,
  ],
  [
    ['put', 'avatars/1/ab12', 'fixtures/originals/avatars/1/ab12'],
    /^darkroom: the (service cannot start|storage cannot be read); see darkroom check: ENOENT[^\n]*\n$/,
  ],
  [
    ['put', 'attachments/1/2/x', 'README.md'],
    /^darkroom: the storage cannot be read; [^\n]*ENOENT[^\n]*\n$/,
  ],
  [['check'], /^FAULT {2}storage: folder \S+ cannot be opened: ENOENT/m],
])('darkroom %j names a folder that has just gone in a line', async (args, reason) => {
  const environment = { STORAGE_DIR: await makeGoneFolder() };
  const { status, stdout, stderr } = await runDarkroom(args, { environment });
  const [shown, other] = args[0] === 'check' ? [stdout.toString(), stderr] : [stderr, `${stdout}`];
  expect([status, other]).toEqual([1, '']);
  expect(shown).toMatch(reason);
});

test.each([
  ['check', ['check']],
  ['render', ['render', '/avatars/1/ab12.webp?size=16', '/dev/null']],
])('%s leaves a full store of renderings to the service', async (_, args) => {
  const { path, put } = await useTemporaryFolder();
  // More than may stay of a store at its smallest bound, and what a process that died left behind.
  await put(`incoming/${'f'.repeat(32)}`, 'x');
  for (let id = 0; id < 17; id += 1) {
    await put(
      `results/avatars/1/${id}/0123456789abcdef-0123456789abcdef`,
      Buffer.alloc(4 * MEBIBYTE),
    );
  }
  const list = () => readdirSync(path, { recursive: true, encoding: 'utf8' }).sort();
  const before = list();
  const environment = {
    RESULT_STORE: 'filesystem',
    RESULT_STORE_DIR: path,
    RESULT_STORE_MAX_BYTES: String(64 * MEBIBYTE),
  };
  const { status, stderr } = await runDarkroom(args, { environment });
  expect([status, stderr]).toEqual([0, '']);
  expect(list()).toEqual(before);
});
