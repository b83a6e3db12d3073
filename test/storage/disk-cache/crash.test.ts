import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ResultStore } from '../../../src/pipeline/ports.ts';
import { resultPath } from '../../../src/pipeline/results/result-path.ts';
import { createFilesystemResultStore } from '../../../src/storage/disk-cache/disk-cache.ts';
import { parseResultFile } from '../../../src/storage/result-file.ts';
import { CRASH_ADDRESSES, crashAddressOf, crashBodyOf } from '../../support/crash-results.mjs';
import { RecordedLog } from '../../support/recorded-log.ts';
import { anySize } from '../contracts/result-store.contract.ts';

const WRITER = resolve(import.meta.dirname, '../../support/result-writer.mjs');
const STORE = resolve(import.meta.dirname, '../../../dist/storage/disk-cache/disk-cache.js');
const ROUNDS = 8;
const { signal } = new AbortController();

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'darkroom-results-'));
});
afterEach(() => rm(folder, { recursive: true, maxRetries: 3 }));

async function openStore(maxBytes: number): Promise<{ store: ResultStore; log: RecordedLog }> {
  const log = new RecordedLog();
  const store = await createFilesystemResultStore({ folder, maxBytes, log });
  await expect
    .poll(() => log.count('result store counted'), { timeout: 20_000 })
    .toBeGreaterThan(0);
  return { store, log };
}

/** Runs a writer and kills it in the middle of its work. */
async function writeAndKill(maxBytes: number, forMs: number): Promise<void> {
  const writer = fork(WRITER, [STORE, folder, `${maxBytes}`]);
  const exited = once(writer, 'exit');
  await Promise.race([once(writer, 'message'), exited]);
  await new Promise((done) => setTimeout(done, forMs));
  writer.kill('SIGKILL');
  expect(await exited).toEqual([null, 'SIGKILL']);
}

/** Reads every address, and tells how many there are; each must be one that was written, whole. */
async function readAll(store: ResultStore): Promise<number> {
  let found = 0;
  for (let number = 0; number < CRASH_ADDRESSES; number += 1) {
    const result = await store.read(crashAddressOf(number), signal, anySize);
    if (result === undefined) continue;
    const body = Buffer.from(result.body);
    const turn = body.readUInt32BE(0);
    expect(turn % CRASH_ADDRESSES).toBe(number);
    expect(body.equals(crashBodyOf(turn))).toBe(true);
    found += 1;
  }
  return found;
}

describe('a writer that is killed', () => {
  // The power stays on: what the disk loses without it is what the torn files of the other tests are.
  test('leaves whole files, and scraps that the next one sweeps up after an hour', async () => {
    const incoming = join(folder, 'incoming');
    let scraps = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      await writeAndKill(100_000_000, 40 + 23 * round);
      for (let number = 0; number < CRASH_ADDRESSES; number += 1) {
        const address = crashAddressOf(number);
        const path = join(folder, 'results', resultPath(address));
        const file = await readFile(path).catch(() => undefined);
        if (file !== undefined) expect(parseResultFile(file, address)).toBeDefined();
      }
      scraps = (await readdir(incoming)).length;
    }
    expect(scraps).toBeGreaterThan(0);

    const { store } = await openStore(100_000_000);
    expect(await readAll(store)).toBeGreaterThan(0);
    expect(await readdir(incoming)).toHaveLength(scraps);
    store.close();

    const longAgo = new Date(Date.now() - 61 * 60_000);
    for (const name of await readdir(incoming))
      await utimes(join(incoming, name), longAgo, longAgo);
    await writeFile(join(incoming, 'of-another-process'), 'x');
    const next = await openStore(100_000_000);
    expect(await readdir(incoming)).toEqual(['of-another-process']);
    expect((await stat(join(incoming, 'of-another-process'))).size).toBe(1);
    next.store.close();
  });

  test('and others that go on share the folder', async () => {
    const { store } = await openStore(4_000_000);
    const killed = (async () => {
      for (let round = 0; round < 4; round += 1) await writeAndKill(4_000_000, 150);
      return true;
    })();
    let isOver = false;
    const end = (): void => {
      isOver = true;
    };
    killed.then(end, end);
    let found = 0;
    for (let turn = 0; !isOver; turn += 1) {
      await store.write(crashAddressOf(turn), { body: crashBodyOf(turn), mimeType: 'image/webp' });
      await nextTurn(); // a write that finds no room is over at once
      if (turn % 20 === 0) found += await readAll(store);
      if (turn % 50 === 0) await store.remove(`avatars/${turn % 7}/`);
    }
    expect(await killed).toBe(true);
    expect(found).toBeGreaterThan(0);
    store.close();
  });
});
