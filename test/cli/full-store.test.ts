import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runDarkroom } from '../support/processes/command-line.ts';

const MEBIBYTE = 1024 * 1024;

/** More than may stay of a store at its smallest bound, and what a process that died left behind. */
function fillStore(): string {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-full-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'incoming'));
  writeFileSync(join(folder, 'incoming/abandoned'), 'x');
  for (let id = 0; id < 17; id += 1) {
    const original = join(folder, 'results/avatars/1', String(id));
    mkdirSync(original, { recursive: true });
    writeFileSync(join(original, 'rendering'), Buffer.alloc(4 * MEBIBYTE));
  }
  utimesSync(join(folder, 'incoming/abandoned'), 1, 1);
  return folder;
}

const filesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();

test.each([
  ['check', ['check']],
  ['render', ['render', '/avatars/1/ab12.webp?size=16', '/dev/null']],
])('%s leaves a full store of renderings to the service', async (_, args) => {
  const folder = fillStore();
  const before = filesOf(folder);
  const environment = {
    RESULT_STORE: 'filesystem',
    RESULT_STORE_DIR: folder,
    RESULT_STORE_MAX_BYTES: String(64 * MEBIBYTE),
  };
  const { status, stderr } = await runDarkroom(args, { environment });
  expect([status, stderr]).toEqual([0, '']);
  expect(filesOf(folder)).toEqual(before);
});
