import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { claimFolder, type FolderClaim } from '../../../src/storage/disk-cache/folder-lock.ts';
import { FolderOwner } from '../../../src/storage/disk-cache/folder-owner.ts';
import { RecordedLog } from '../../support/recorded-log.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';

const CLAIMANT = resolve(import.meta.dirname, '../../support/disk-cache/folder-claimant.mjs');
const LOCK = resolve(import.meta.dirname, '../../../dist/storage/disk-cache/folder-lock.js');

let folder: string;
beforeEach(async () => {
  // Longer than the address of a socket can be.
  folder = join((await useTemporaryFolder()).path, 'x'.repeat(120));
  await mkdir(folder);
});

async function claim(): Promise<FolderClaim> {
  const claimed = await claimFolder(folder);
  onTestFinished(() => claimed.release());
  return claimed;
}

/** A process that claims the folder. */
interface Claimant {
  readonly child: ChildProcess;
  /** What its claims came to so far; of some in a row that came to the same, one. */
  readonly outcomes: () => string[];
}

/** @param before a command that starts another one, in a container for example */
function startClaimant(before: readonly string[] = []): Claimant {
  const [command = '', ...args] = [...before, process.execPath, CLAIMANT, LOCK, folder];
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  // A process that ends may close its connections before the socket that it listens at: then it is asked once more.
  const outcomes = () => output.split('\n').filter((line, at, all) => line && line !== all[at - 1]);
  return { child, outcomes };
}

const until = (claimant: Claimant, ...outcomes: string[]) =>
  expect.poll(claimant.outcomes, { interval: 10 }).toEqual(outcomes);

describe('a folder', () => {
  test('is owned by one; another hears of its end, and takes over', async () => {
    const owner = await claim();
    expect(owner.kind).toBe('owned');
    const other = await claim();
    if (other.kind === 'owned') throw new Error('There are two owners.');
    let isOver = false;
    const ended = other.ended.then(() => {
      isOver = true;
    });
    await new Promise((done) => setTimeout(done, 50));
    expect(isOver).toBe(false);
    owner.release();
    await ended;
    expect((await claim()).kind).toBe('owned');
  });

  test('is waited for until the wait is given up', async () => {
    await claim();
    const other = await claim();
    if (other.kind === 'owned') throw new Error('There are two owners.');
    other.release();
    await other.ended;
  });

  test('that is released has nothing of it left', async () => {
    const owner = await claim();
    expect(readdirSync(folder)).toHaveLength(1);
    owner.release();
    await expect.poll(() => readdirSync(folder)).toEqual([]);
  });

  test('that many claim at once has one owner', async () => {
    const claims = await Promise.all(Array.from({ length: 12 }, claim));
    const owners = claims.filter(({ kind }) => kind === 'owned');
    expect(owners.length).toBeLessThanOrEqual(1);
    await expect.poll(() => readdirSync(folder).length).toBe(owners.length);
    for (const one of claims) one.release();
  });

  test('may have other files in it, which are left alone', async () => {
    for (const name of ['a', 'f'.repeat(32)]) await writeFile(join(folder, name), 'x');
    expect((await claim()).kind).toBe('owned');
    expect(readdirSync(folder)).toHaveLength(3);
  });
});

test.each([
  ['free', false],
  ['taken', true],
])(
  'a %s folder that is given up while it is claimed is not worked in, and nothing is logged',
  async (_, isTaken) => {
    const store = dirname(folder);
    await rename(folder, join(store, 'owner'));
    folder = join(store, 'owner');
    if (isTaken) await claim();
    const log = new RecordedLog();
    const owner = new FolderOwner(store, log);
    let works = 0;
    const opened = owner.open(async () => {
      works += 1;
    });
    owner.close();
    await opened;
    expect([works, log.entries]).toEqual([0, []]);
    if (!isTaken) expect((await claim()).kind).toBe('owned');
  },
);

describe('the process that owns a folder', () => {
  test.each(['SIGKILL', 'SIGTERM'] as const)('gives it up by %s', async (signal) => {
    const first = startClaimant();
    await until(first, 'owned');
    const second = startClaimant();
    await until(second, 'taken');
    first.child.kill(signal);
    await until(second, 'taken', 'owned');
    // What the dead has left is cleared away.
    expect(readdirSync(folder)).toHaveLength(1);
  });

  test('keeps it while it is stopped', async () => {
    const first = startClaimant();
    await until(first, 'owned');
    first.child.kill('SIGSTOP');
    const second = startClaimant();
    await until(second, 'taken');
    first.child.kill('SIGKILL');
    await until(second, 'taken', 'owned');
  });

  test('is followed by one of many that wait', async () => {
    const first = startClaimant();
    await until(first, 'owned');
    const others = Array.from({ length: 4 }, () => startClaimant());
    for (const other of others) await until(other, 'taken');
    first.child.kill('SIGKILL');
    await expect
      .poll(() => others.filter((other) => other.outcomes().includes('owned')).length, {
        interval: 10,
      })
      .toBe(1);
    const [next] = others.filter((other) => other.outcomes().includes('owned'));
    next?.child.kill('SIGKILL');
    await expect
      .poll(() => others.filter((other) => other.outcomes().includes('owned')).length, {
        interval: 10,
      })
      .toBe(2);
  });
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

test.skipIf(!hasContainers)('a lock holds between containers that share the folder', async () => {
  const first = startClaimant(CONTAINER);
  await until(first, 'owned');
  const second = startClaimant(CONTAINER);
  await until(second, 'taken');
  expect((await claim()).kind).toBe('taken');
  first.child.kill('SIGKILL');
  await once(first.child, 'exit');
  await until(second, 'taken', 'owned');
  expect((await claim()).kind).toBe('taken');
});
