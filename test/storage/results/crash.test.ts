import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { readdir, utimes } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import type { ResultStore } from '../../../src/pipeline/ports.ts';
import { findFreePorts } from '../../support/processes/free-ports.ts';
import { startService } from '../../support/processes/service-process.ts';
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
const TOKEN = 'a-token-of-the-tests';
const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
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
  expect(await listFiles()).not.toEqual(before);
  expect(await readAll(store)).toBeGreaterThan(0);
});

test('two services on one folder serve what the other has stored, also after one was killed', async () => {
  const start = async () => {
    const [adminPort = 0] = await findFreePorts(1);
    const service = await startService({
      VIDEO_DECODER: 'off',
      RESULT_STORE: 'filesystem',
      RESULT_STORE_DIR: folder,
      ADMIN_PORT: String(adminPort),
      ADMIN_TOKEN: TOKEN,
    });
    onTestFinished(() => void service.stop('SIGKILL'));
    const admin = async (path: string) =>
      (
        await fetch(`http://127.0.0.1:${adminPort}${path}`, {
          headers: { authorization: `Bearer ${TOKEN}` },
        })
      ).text();
    const ask = async (size: number) => {
      const reply = await fetch(`${service.origin}/icons/1/ab12.webp?size=${size}`);
      return reply.headers.get('cache-status');
    };
    return { service, admin, ask };
  };
  const [first, second] = [await start(), await start()];
  for (const { admin } of [first, second]) {
    const ready = async () => JSON.parse(await admin('/readyz'));
    await expect.poll(ready).toMatchObject({ status: 'ready', reasons: [], version });
    expect(await admin('/metrics')).toMatch(
      new RegExp(`^darkroom_build_info\\{.*version="${version}"`, 'm'),
    );
  }
  await expect.poll(first.service.output).toContain('"msg":"result store swept"');
  expect(await first.ask(16)).toBe('darkroom; fwd=miss; stored');
  await expect.poll(listFiles).toHaveLength(1);
  expect(await second.ask(16)).toMatch(/detail=store$/);
  await first.service.stop('SIGKILL');
  expect(await second.ask(32)).toBe('darkroom; fwd=miss; stored');
  expect(await second.service.stop()).toBe(0);
  expect(await (await start()).ask(32)).toMatch(/detail=store$/);
}, 60_000);
