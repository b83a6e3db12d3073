import { execFile, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { getuid } from 'node:process';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Confinement } from '../../src/workers/confinement/report.ts';
import { readAttackTable } from './attack-table.ts';

/** What became of a malicious worker in one sandbox. */
interface Takeover {
  readonly sandbox: string;
  readonly isWhole: boolean;
  readonly text: string;
  readonly confinement: Confinement;
  /** Whether each attack did harm. */
  readonly harm: Readonly<Record<string, boolean>>;
}

const run = promisify(execFile);
const PROGRAM = resolve(import.meta.dirname, 'takeover/attack-every-sandbox.mjs');
const isRoot = getuid?.() === 0;
/** A user that no machine has, and one that files are not owned by. */
const ORDINARY = 54_321;

/** Folders of a service: below the application, and, where we may, below `/usr/local`. */
function makeFolders(userId: number | undefined): string[] {
  mkdirSync('test-report', { recursive: true });
  const parents = [resolve('test-report'), ...(isRoot ? ['/usr/local'] : [])];
  return parents.map((parent) => {
    const folder = mkdtempSync(join(parent, 'takeover-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    chmodSync(folder, 0o755);
    if (userId !== undefined) chownSync(folder, userId, userId);
    return folder;
  });
}

/** Tries all attacks in every sandbox that works, with these words before Node. */
async function attack(before: readonly string[], userId?: number): Promise<Takeover[]> {
  const words = [...before, process.execPath, PROGRAM, 'all', ...makeFolders(userId)];
  const { stdout } = await run(words[0] ?? '', words.slice(1), { maxBuffer: 2 ** 24 });
  return JSON.parse(stdout);
}

const table = readAttackTable('bubblewrap');

/** What the document says of a sandbox. */
function expectHarm(sandbox: string, asRoot: boolean): Record<string, boolean> {
  return Object.fromEntries(
    [...table].map(([name, cells]) => {
      const cell = cells.get(sandbox);
      if (cell === undefined) throw new Error(`The document has no column "${sandbox}".`);
      return [name, cell === 'yes' || cell === (asRoot ? 'as root' : 'not as root')];
    }),
  );
}

const setPrivileges = [
  'setpriv',
  '--reuid',
  `${ORDINARY}`,
  '--regid',
  `${ORDINARY}`,
  '--clear-groups',
];

describe('a worker that is taken over (Linux)', () => {
  test('can do what the document says, in every sandbox', async () => {
    const found = await attack([]);
    for (const { sandbox, harm, isWhole, text, confinement } of found) {
      expect({ sandbox, harm }).toEqual({ sandbox, harm: expectHarm(sandbox, isRoot) });
      expect({ sandbox, isWhole }).toEqual({ sandbox, isWhole: sandbox === 'bubblewrap' });
      expect(text).toContain(
        isWhole ? `confined whole (${sandbox})` : `confined in part (${sandbox}): `,
      );
      expect(confinement).toMatchObject({ memoryBytes: 2 ** 30, fileBytes: 0, descriptors: 64 });
    }
    console.log(
      `as ${isRoot ? 'root' : 'ourselves'}: ${found.map(({ sandbox }) => sandbox).join(', ')}`,
    );
  });

  test.skipIf(!isRoot)(
    '(root alone can try it as another user) can do so where that is not root',
    async () => {
      const found = await attack(setPrivileges, ORDINARY);
      for (const { sandbox, harm } of found) {
        expect({ sandbox, harm }).toEqual({ sandbox, harm: expectHarm(sandbox, false) });
      }
      console.log(`as an ordinary user: ${found.map(({ sandbox }) => sandbox).join(', ')}`);
    },
  );

  test.skipIf(!isRoot)(
    '(root alone can lose it) can do no more as root of a container, which creates no namespaces',
    async () => {
      const found = await attack(['setpriv', '--bounding-set', '-sys_admin', '--']);
      for (const { sandbox, harm, isWhole } of found) {
        expect({ sandbox, harm }).toEqual({ sandbox, harm: expectHarm(sandbox, true) });
        expect({ sandbox, isWhole }).toEqual({ sandbox, isWhole: sandbox === 'bubblewrap' });
      }
      console.log(`as root of a container: ${found.map(({ sandbox }) => sandbox).join(', ')}`);
    },
  );

  test.skipIf(!isRoot).each([
    ['root', [], undefined, true],
    ['an ordinary user', setPrivileges, ORDINARY, false],
  ] as const)(
    '(root alone can make that) can do no more without user namespaces, as %s',
    async (name, before, userId, asRoot) => {
      const found = await attack([...(await withoutUserNamespaces()), ...before], userId);
      expect(found.map(({ sandbox }) => sandbox)).not.toContain('unshare with a root of its own');
      for (const { sandbox, harm } of found) {
        const expected = expectHarm(sandbox, asRoot);
        // That root is none of the machine, and may not do all that root may.
        const more = Object.keys(harm).filter((attack) => harm[attack] && !expected[attack]);
        expect({ sandbox, more }).toEqual({ sandbox, more: [] });
      }
      console.log(
        `without user namespaces, as ${name}: ${found.map(({ sandbox }) => sandbox).join(', ')}`,
      );
    },
  );
});

/** What starts a program as root of a user namespace in which there can be no other one. */
async function withoutUserNamespaces(): Promise<string[]> {
  const holder = spawn('unshare', ['--user', 'sleep', 'infinity']);
  onTestFinished(() => void holder.kill('SIGKILL'));
  const { pid } = holder;
  await expect.poll(() => readFileSync(`/proc/${pid}/comm`, 'utf8')).toBe('sleep\n');
  for (const map of ['uid_map', 'gid_map']) writeFileSync(`/proc/${pid}/${map}`, '0 0 65536\n');
  const script = 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"';
  const words = ['nsenter', '--target', `${pid}`, '--user', '--setuid', '0', '--setgid', '0'];
  return [...words, 'sh', '-c', script, 'sh'];
}
