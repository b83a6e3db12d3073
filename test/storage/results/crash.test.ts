import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, utimes } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import type { ResultStore } from '../../../src/pipeline/ports.ts';
import {
  CRASH_ADDRESSES,
  crashAddressOf,
  crashBodyOf,
} from '../../support/result-folder/crash-results.mjs';
import {
  openFolder,
  openSweptFolder,
  usedBytes,
} from '../../support/result-folder/result-folder.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';
import { atScale } from '../../support/test-scale.ts';
import { ignoreSize } from '../contracts/result-store.contract.ts';

const WRITER = resolve(import.meta.dirname, '../../support/result-folder/result-writer.mjs');
const STORE = resolve(import.meta.dirname, '../../../dist/storage/results/folder.js');
const ROUNDS = atScale(2, 8);
const MAX_BYTES = 8_000_000;
const { signal } = new AbortController();

let folder: string;
beforeEach(async () => {
  folder = (await useTemporaryFolder()).path;
});

/** Starts a process that writes without end. */
async function startWriter(seed: number, maxBytes = MAX_BYTES): Promise<ChildProcess> {
  const args = [WRITER, STORE, folder, `${maxBytes}`, `${seed}`];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/** Reads every address, and counts what is there; each must be one that was written, whole. */
async function readAll(store: ResultStore): Promise<number> {
  let found = 0;
  for (let number = 0; number < CRASH_ADDRESSES; number += 1) {
    const result = await store.read(crashAddressOf(number), signal, ignoreSize);
    if (result === undefined) continue;
    const body = Buffer.from(result.body);
    const turn = body.readUInt32BE(0);
    expect(turn % CRASH_ADDRESSES).toBe(number);
    expect(body.equals(crashBodyOf(turn))).toBe(true);
    found += 1;
  }
  return found;
}

async function listFiles(): Promise<readonly string[]> {
  const entries = await readdir(join(folder, 'results'), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

// The power stays on: what the disk loses without it is what the damaged files of other tests are.
test('killed writers leave whole files within the bound, and unfinished ones that the next sweep removes', async () => {
  const incoming = join(folder, 'incoming');
  for (let round = 0; round < ROUNDS; round += 1) {
    // First they sweep for most of the time, and then they write.
    const isWide = round >= ROUNDS / 2;
    const writers = [round, round + 100].map((seed) =>
      startWriter(seed, isWide ? 100 * MAX_BYTES : MAX_BYTES),
    );
    await Promise.all(writers);
    await sleep(150 + 73 * round);
    for (const writer of writers) await end(await writer);
    if (!isWide) expect(await usedBytes(folder)).toBeLessThanOrEqual(1.1 * MAX_BYTES);
  }
  const scraps = await readdir(incoming);
  expect(scraps.length).toBeGreaterThan(0);
  const long = new Date(Date.now() - 3_600_000);
  for (const name of scraps) await utimes(join(incoming, name), long, long);

  const before = await listFiles();
  const store = await openSweptFolder({ folder, maxBytes: 100 * MAX_BYTES });
  expect(await readdir(incoming)).toEqual([]);
  expect(await readAll(store)).toBe(before.length);
  expect((await listFiles()).length).toBe(before.length);
  expect(store.usage()?.heldBytes).toBe(await usedBytes(folder));
});

test('four processes that write into one folder exceed its bound by a tenth at most, and read whole files', async () => {
  const filling = await openFolder({ folder, maxBytes: 100 * MAX_BYTES });
  for (let turn = 0; (await usedBytes(folder)) < 0.85 * MAX_BYTES; turn += 1)
    await filling.write(crashAddressOf(turn), { body: crashBodyOf(turn), mimeType: 'image/webp' });
  const before = await listFiles();
  await Promise.all([1, 2, 3, 4].map((seed) => startWriter(seed)));
  const store = await openFolder({ folder, maxBytes: MAX_BYTES });
  const samples: number[] = [];
  const isFull = () => (samples.at(-1) ?? 0) > 0.85 * MAX_BYTES;
  const sample = async (): Promise<void> => {
    samples.push(await usedBytes(folder).catch(() => 0));
    await sleep(5);
  };
  for (const endMs = performance.now() + 20_000; !isFull() && performance.now() < endMs; )
    await sample();
  expect(isFull()).toBe(true);
  for (const endMs = performance.now() + atScale(1_000, 10_000); performance.now() < endMs; )
    await sample();
  expect(Math.max(...samples)).toBeLessThanOrEqual(1.1 * MAX_BYTES);
  // A folder may go while it is listed.
  await expect.poll(listFiles).not.toEqual(before);
  expect(await readAll(store)).toBeGreaterThan(0);
});
