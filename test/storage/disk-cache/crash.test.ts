import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { ResultStore } from '../../../src/pipeline/ports.ts';
import { resultPath } from '../../../src/pipeline/results/result-path.ts';
import { createDiskCache } from '../../../src/storage/disk-cache/disk-cache.ts';
import { parseResultFile } from '../../../src/storage/result-file.ts';
import {
  CRASH_ADDRESSES,
  crashAddressOf,
  crashBodyOf,
} from '../../support/disk-cache/crash-results.mjs';
import { openScannedCache, untilScanned, usedBytes } from '../../support/disk-cache/disk-cache.ts';
import { RecordedLog } from '../../support/recorded-log.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';
import { anySize } from '../contracts/result-store.contract.ts';

const WRITER = resolve(import.meta.dirname, '../../support/disk-cache/result-writer.mjs');
const STORE = resolve(import.meta.dirname, '../../../dist/storage/disk-cache/disk-cache.js');
const ROUNDS = 8;
const MAX_BYTES = 4_000_000;
const { signal } = new AbortController();

let folder: string;
beforeEach(async () => {
  folder = (await useTemporaryFolder()).path;
});

/** Starts a process that writes without end, and waits until it does. */
async function startWriter(maxBytes: number): Promise<ChildProcess> {
  const writer = fork(WRITER, [STORE, folder, `${maxBytes}`]);
  onTestFinished(() => void writer.kill('SIGKILL'));
  const exited = once(writer, 'exit').then(() => Promise.reject(new Error('It has ended.')));
  await Promise.race([once(writer, 'message'), exited]);
  exited.catch(() => undefined);
  return writer;
}

async function kill(writer: ChildProcess): Promise<void> {
  const exited = once(writer, 'exit');
  writer.kill('SIGKILL');
  expect(await exited).toEqual([null, 'SIGKILL']);
}

/** Reads every address, and counts what is there; each must be one that was written, whole. */
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
  test('leaves whole files within the bound, and scraps that the next one sweeps up', async () => {
    const incoming = join(folder, 'incoming');
    let scraps = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const writer = await startWriter(MAX_BYTES);
      await new Promise((done) => setTimeout(done, 40 + 23 * round));
      await kill(writer);
      for (let number = 0; number < CRASH_ADDRESSES; number += 1) {
        const address = crashAddressOf(number);
        const path = join(folder, 'results', resultPath(address));
        const file = await readFile(path).catch(() => undefined);
        if (file !== undefined) expect(parseResultFile(file, address)).toBeDefined();
      }
      expect(await usedBytes(folder)).toBeLessThanOrEqual(MAX_BYTES);
      scraps += (await readdir(incoming)).length;
    }
    expect(scraps).toBeGreaterThan(0);

    const store = await openScannedCache({ folder, maxBytes: MAX_BYTES });
    expect(await readdir(incoming)).toEqual([]);
    expect(await readAll(store)).toBeGreaterThan(0);
    expect(store.usage()?.heldBytes).toBe(await usedBytes(folder));
    store.close();
  });

  test('is followed by one that has waited, and serves without the store until then', async () => {
    const writer = await startWriter(MAX_BYTES);
    const log = new RecordedLog();
    const store = await createDiskCache({ folder, maxBytes: MAX_BYTES, log });
    const taken = 'another process owns the folder of the result store; renderings are not stored';
    expect(store.shortcoming()).toBe(taken);
    expect(await readAll(store)).toBe(0);
    expect(await store.remove('avatars/')).toBe(0);
    await store.write(crashAddressOf(0), { body: Buffer.alloc(9), mimeType: 'image/webp' });
    expect(store.usage()).toBeUndefined();
    await expect.poll(() => usedBytes(folder)).toBeGreaterThan(100_000);
    await kill(writer);
    await untilScanned(store);
    expect(store.shortcoming()).toBeUndefined();
    expect(await readAll(store)).toBeGreaterThan(0);
    expect(log.entries.map(({ message }) => message)).toEqual([
      taken,
      'the folder of the result store is ours; renderings are stored',
      'result store scanned',
    ]);
    store.close();
    await startWriter(MAX_BYTES);
  });
});
