import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { ResultStore } from '../../../src/pipeline/ports.ts';
import {
  CRASH_ADDRESSES,
  crashAddressOf,
  crashBodyOf,
} from '../../support/disk-cache/crash-results.mjs';
import { openCache, untilScanned, usedBytes } from '../../support/disk-cache/disk-cache.ts';
import { findFreePorts } from '../../support/processes/free-ports.ts';
import { startService } from '../../support/processes/service-process.ts';
import { RecordedLog } from '../../support/recorded-log.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';
import { atScale } from '../../support/test-scale.ts';
import { anySize } from '../contracts/result-store.contract.ts';

const WRITER = resolve(import.meta.dirname, '../../support/disk-cache/result-writer.mjs');
const STORE = resolve(import.meta.dirname, '../../../dist/storage/disk-cache/disk-cache.js');
const ROUNDS = atScale(4, 8);
const MAX_BYTES = 4_000_000;
const TAKEN = 'another process owns the folder of the result store; renderings are not stored';
const { signal } = new AbortController();

let folder: string;
beforeEach(async () => {
  // Longer than the address of a socket can be.
  folder = join((await useTemporaryFolder()).path, 'x'.repeat(120));
  await mkdir(folder);
});

/** A process that writes without end as soon as the folder is its own. */
interface Writer {
  readonly child: ChildProcess;
  /** What it has said: `first` or `waiting`, then `writing`. */
  readonly said: () => string[];
}

/** @param before a command that starts another one, in a container for example */
function startWriter(before: readonly string[] = []): Writer {
  const words = [...before, process.execPath, WRITER, STORE, folder, `${MAX_BYTES}`];
  const child = spawn(words[0] ?? '', words.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  return { child, said: () => output.split('\n').slice(0, -1) };
}

const isWriting = ({ said }: Writer): boolean => said().includes('writing');
const untilWriting = (writer: Writer) => expect.poll(() => isWriting(writer), soon).toBe(true);
const soon = { timeout: 20_000, interval: 5 };

async function end({ child }: Writer, by: NodeJS.Signals): Promise<void> {
  const exited = once(child, 'exit');
  child.kill(by);
  await exited;
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

// The power stays on: what the disk loses without it is what the damaged files of other tests are.
test('a writer that is killed leaves whole files within the bound, and scraps that the next one sweeps up', async () => {
  const incoming = join(folder, 'incoming');
  let scraps = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const writer = startWriter();
    await untilWriting(writer);
    await sleep(40 + 23 * round);
    await end(writer, 'SIGKILL');
    expect(await usedBytes(folder)).toBeLessThanOrEqual(MAX_BYTES);
    scraps += (await readdir(incoming)).length;
  }
  expect(scraps).toBeGreaterThan(0);

  const files = async () =>
    (await readdir(join(folder, 'results'), { recursive: true, withFileTypes: true })).filter(
      (entry) => entry.isFile(),
    ).length;
  const before = await files();
  const store = await openCache({ folder, maxBytes: MAX_BYTES });
  await untilScanned(store);
  expect(await readdir(incoming)).toEqual([]);
  expect(await readAll(store)).toBe(before);
  expect(await files()).toBe(before);
  expect(store.usage()?.heldBytes).toBe(await usedBytes(folder));
});

/** Processes, network, IPC, mounts and host name of its own: what a container has; it takes root. */
const CONTAINER = 'unshare --pid --kill-child --mount-proc --net --ipc --uts'.split(' ');
const hasContainers = ((): boolean => {
  const [command = '', ...args] = CONTAINER;
  try {
    execFileSync(command, [...args, 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

describe('a folder has one owner at a time', () => {
  test.for([
    ['4 processes, which are killed', 4, 'SIGKILL', []],
    ['2 processes, which are ended', 2, 'SIGTERM', []],
    ['2 containers that share it', 2, 'SIGKILL', CONTAINER],
  ] as const)('of %s', async ([, count, by, before], { skip }) => {
    if (before.length > 0 && !hasContainers) return skip('takes root, and unshare');
    const writers = Array.from({ length: count }, () => startWriter(before));
    await expect.poll(() => writers.every(({ said }) => said().length > 0), soon).toBe(true);
    for (let owned = 1; owned <= count; owned += 1) {
      const owners = () => writers.filter(isWriting);
      await expect.poll(() => owners().length, soon).toBe(owned);
      await sleep(50);
      expect(owners()).toHaveLength(owned);
      // What the dead have left is cleared away.
      expect(await readdir(join(folder, 'owner'))).toHaveLength(1);
      for (const owner of owners()) if (owner.child.signalCode === null) await end(owner, by);
    }
  });

  test('which keeps it while it is stopped', async () => {
    const first = startWriter();
    await untilWriting(first);
    first.child.kill('SIGSTOP');
    const second = startWriter();
    await expect.poll(second.said, soon).toEqual(['waiting']);
    await sleep(200);
    expect(isWriting(second)).toBe(false);
    await end(first, 'SIGKILL');
    await untilWriting(second);
  });

  test('the others read, write and remove nothing, and one that was closed takes nothing over', async () => {
    const writer = startWriter();
    await untilWriting(writer);
    const log = new RecordedLog();
    const [store, closed] = await Promise.all([
      openCache({ folder, maxBytes: MAX_BYTES, log }),
      openCache({ folder, maxBytes: MAX_BYTES }),
    ]);
    closed.close();
    expect(store.shortcoming()).toBe(TAKEN);
    expect([await readAll(store), await store.remove('avatars/')]).toEqual([0, 0]);
    await store.write(crashAddressOf(0), { body: Buffer.alloc(9), mimeType: 'image/webp' });
    expect(store.usage()).toBeUndefined();
    await expect.poll(() => usedBytes(folder), soon).toBeGreaterThan(100_000);
    await end(writer, 'SIGKILL');
    await untilScanned(store);
    expect(store.shortcoming()).toBeUndefined();
    expect(await readAll(store)).toBeGreaterThan(0);
    expect(closed.usage()).toBeUndefined();
    expect(log.entries.map(({ message }) => message)).toEqual([
      TAKEN,
      'the folder of the result store is ours; renderings are stored',
      'result store scanned',
    ]);
    store.close();
    await untilWriting(startWriter());
  });
});

test('of two services on one folder, one serves without it until the other is killed', async () => {
  const start = async () => {
    const [adminPort = 0] = await findFreePorts(1);
    const service = await startService({
      RESULT_STORE: 'filesystem',
      RESULT_STORE_DIR: folder,
      ADMIN_PORT: String(adminPort),
      ADMIN_TOKEN: 'a-token-of-the-tests',
    });
    onTestFinished(() => void service.stop('SIGKILL'));
    const ready = async () => (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).json();
    const ask = async () => {
      const reply = await fetch(`${service.origin}/icons/1/ab12.webp?size=16`);
      return reply.headers.get('cache-status');
    };
    return { service, ready, ask };
  };
  const first = await start();
  await expect.poll(first.ready).toMatchObject({ status: 'ready' });
  expect(await first.ask()).toBe('darkroom; fwd=miss; stored');
  const second = await start();
  await expect.poll(second.ready).toMatchObject({ status: 'degraded', reasons: [TAKEN] });
  expect(await second.ask()).toBe('darkroom; fwd=miss; stored');
  await first.service.stop('SIGKILL');
  await expect.poll(second.ready).toMatchObject({ status: 'ready', reasons: [] });
  await expect.poll(second.service.output).toContain('"msg":"result store scanned"');
  // What the first has stored is found by one that has it in no memory.
  expect(await second.service.stop()).toBe(0);
  const third = await start();
  await expect.poll(third.service.output).toContain('"msg":"result store scanned"');
  expect(await third.ask()).toMatch(/detail=store$/);
});
