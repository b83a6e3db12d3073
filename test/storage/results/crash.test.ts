import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, utimes } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import type { ResultStore } from '../../../src/pipeline/ports.ts';
import { signal } from '../../support/open-stream.ts';
import {
  openDirectoryStore,
  openSweptStore,
  usedBytes,
} from '../../support/result-directory/result-directory.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { atScale } from '../../support/test-scale.ts';
import { addressOf, ignoreSize } from '../contracts/result-store.contract.ts';

const WRITER = resolve(import.meta.dirname, '../../support/result-directory/result-writer.mjs');
const STORE = resolve(import.meta.dirname, '../../../dist/storage/results/directory.js');
const ROUNDS = atScale(2, 8);
const MAX_BYTES = 8_000_000;

const addresses = Array.from({ length: 200 }, (_, number) =>
  addressOf({ originKey: `avatars/${number % 7}/${number}` }),
);

/** Returns the body that a writer stores in a round. */
function bodyOf(round: number): Buffer<ArrayBuffer> {
  const body = Buffer.alloc(8 + ((round * 7_919) % 300_000), round & 0xff);
  body.writeUInt32BE(round, 0);
  return body;
}

let directory: string;
beforeEach(async () => {
  directory = (await useTemporaryDirectory()).path;
});

async function startWriter(seed: number, maxBytes = MAX_BYTES): Promise<ChildProcess> {
  const args = [WRITER, STORE, directory, `${maxBytes}`, `${seed}`, JSON.stringify(addresses)];
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

async function readAll(store: ResultStore): Promise<number> {
  let found = 0;
  for (const [number, address] of addresses.entries()) {
    const result = await store.read(address, signal, ignoreSize);
    if (result === undefined) continue;
    const body = Buffer.from(result.body);
    const round = body.readUInt32BE(0);
    expect(round % addresses.length).toBe(number);
    expect(body.equals(bodyOf(round))).toBe(true);
    found += 1;
  }
  return found;
}

async function listFiles(): Promise<readonly string[]> {
  const entries = await readdir(join(directory, 'results'), {
    recursive: true,
    withFileTypes: true,
  });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

// Power cuts are not simulated: other tests read damaged files as a power cut leaves them.
test('killed writers leave complete files within the limit, and unfinished ones that the next sweep removes', async () => {
  const incoming = join(directory, 'incoming');
  for (let round = 0; round < ROUNDS; round += 1) {
    // At first the processes mostly sweep, then they mostly write.
    const hasLargeLimit = round >= ROUNDS / 2;
    const start = (seed: number) => startWriter(seed, hasLargeLimit ? 100 * MAX_BYTES : MAX_BYTES);
    const writers = await Promise.all([round, round + 100].map(start));
    await sleep(150 + 73 * round);
    for (const writer of writers) await end(writer);
    if (!hasLargeLimit) expect(await usedBytes(directory)).toBeLessThanOrEqual(1.1 * MAX_BYTES);
  }
  const scraps = await readdir(incoming);
  expect(scraps.length).toBeGreaterThan(0);
  const anHourAgo = new Date(Date.now() - 3_600_000);
  for (const name of scraps) await utimes(join(incoming, name), anHourAgo, anHourAgo);

  const before = await listFiles();
  const store = await openSweptStore({ directory, maxBytes: 100 * MAX_BYTES });
  expect(await readdir(incoming)).toEqual([]);
  expect(await readAll(store)).toBe(before.length);
  expect((await listFiles()).length).toBe(before.length);
  expect(store.usage()?.heldBytes).toBe(await usedBytes(directory));
});

test('four processes that write into one directory exceed its limit by at most a tenth, and read complete files', async () => {
  const filling = await openDirectoryStore({ directory, maxBytes: 100 * MAX_BYTES });
  for (const [round, address] of addresses.entries()) {
    if ((await usedBytes(directory)) > 0.85 * MAX_BYTES) break;
    await filling.write(address, { body: bodyOf(round), mimeType: 'image/webp' });
  }
  const before = await listFiles();
  await Promise.all([1, 2, 3, 4].map((seed) => startWriter(seed)));
  const store = await openDirectoryStore({ directory, maxBytes: MAX_BYTES });
  let peakBytes = 0;
  const sample = async (): Promise<number> => {
    const bytes = await usedBytes(directory).catch(() => 0);
    peakBytes = Math.max(peakBytes, bytes);
    return bytes;
  };
  await expect.poll(sample, { timeout: 20_000 }).toBeGreaterThan(0.85 * MAX_BYTES);
  const endMs = performance.now() + atScale(1_000, 10_000);
  while (performance.now() < endMs) await sample().then(() => sleep(5));
  expect(peakBytes).toBeLessThanOrEqual(1.1 * MAX_BYTES);
  // A directory may disappear while it is listed.
  await expect.poll(listFiles).not.toEqual(before);
  expect(await readAll(store)).toBeGreaterThan(0);
});
