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
import { expect, onTestFinished, test } from 'vitest';
import { readHarm } from './attack-table.ts';

/** Outcome of a malicious worker in one sandbox; `harm`: whether each attack did harm. */
interface Takeover {
  readonly sandbox: string;
  readonly isFullySandboxed: boolean;
  readonly text: string;
  readonly confinement: object;
  readonly harm: Readonly<Record<string, boolean>>;
}

const run = promisify(execFile);
const PROGRAM = resolve(import.meta.dirname, 'takeover/attack-every-sandbox.mjs');
const isRoot = getuid?.() === 0;
/** A user that does not exist and owns no files. */
const ORDINARY = 54_321;

/** Creates directories of a service below the application and, if possible, below `/usr/local`. */
function makeDirectories(userId: number | undefined): string[] {
  mkdirSync('test-report', { recursive: true });
  const parents = [resolve('test-report'), ...(isRoot ? ['/usr/local'] : [])];
  return parents.map((parent) => {
    const directory = mkdtempSync(join(parent, 'takeover-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    chmodSync(directory, 0o755);
    if (userId !== undefined) chownSync(directory, userId, userId);
    return directory;
  });
}

/** Runs all attacks in every working sandbox, with a command prefix before Node. */
async function attack(before: readonly string[], userId?: number): Promise<Takeover[]> {
  const words = [...before, process.execPath, PROGRAM, 'all', ...makeDirectories(userId)];
  const { stdout } = await run(words[0] ?? '', words.slice(1), { maxBuffer: 2 ** 24 });
  return JSON.parse(stdout);
}

const setPrivileges = `setpriv --reuid ${ORDINARY} --regid ${ORDINARY} --clear-groups`.split(' ');
const dropAdmin = ['setpriv', '--bounding-set', '-sys_admin', '--'];

/** Command prefixes that start the service, with the owner of its directories. All but the first need root. */
const launches: [name: string, before: () => string[] | Promise<string[]>, userId?: number][] = [
  ['as ourselves', () => []],
  ['as an ordinary user', () => setPrivileges, ORDINARY],
  ['as root of a container, which creates no namespaces', () => dropAdmin],
  ['as root without user namespaces', withoutUserNamespaces],
  [
    'as an ordinary user without user namespaces',
    async () => [...(await withoutUserNamespaces()), ...setPrivileges],
    ORDINARY,
  ],
];

test.for(launches)(
  'a compromised worker can do exactly what docs/security.md says, in every sandbox, %s',
  async ([name, before, userId], { skip }) => {
    skip(!isRoot && name !== 'as ourselves', 'needs root');
    const found = await attack(await before(), userId);
    console.log(`${name}: ${found.map(({ sandbox }) => sandbox).join(', ')}`);
    expect(found).not.toEqual([]);
    for (const { sandbox, harm, isFullySandboxed, text, confinement } of found) {
      const expected = readHarm('bubblewrap', sandbox, isRoot && userId === undefined);
      // Without user namespaces, root lacks some privileges of the machine's root.
      const isLess = name.endsWith('without user namespaces');
      const more = Object.keys(harm).filter((each) => harm[each] && !expected[each]);
      expect({ sandbox, harm: isLess ? more : harm }).toEqual({
        sandbox,
        harm: isLess ? [] : expected,
      });
      expect({ sandbox, isFullySandboxed }).toEqual({
        sandbox,
        isFullySandboxed: sandbox === 'bubblewrap',
      });
      expect(text).toContain(
        isFullySandboxed ? `confined whole (${sandbox})` : `confined in part (${sandbox}): `,
      );
      expect(confinement).toMatchObject({ memoryBytes: 2 ** 30, fileBytes: 0, descriptors: 64 });
    }
  },
);

/** Returns a command prefix for root of a user namespace that permits no nested one. */
async function withoutUserNamespaces(): Promise<string[]> {
  const namespaceOwner = spawn('unshare', ['--user', 'sleep', 'infinity']);
  onTestFinished(() => void namespaceOwner.kill('SIGKILL'));
  const { pid } = namespaceOwner;
  await expect.poll(() => readFileSync(`/proc/${pid}/comm`, 'utf8')).toBe('sleep\n');
  for (const map of ['uid_map', 'gid_map']) writeFileSync(`/proc/${pid}/${map}`, '0 0 65536\n');
  const script = 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"';
  const words = ['nsenter', '--target', `${pid}`, '--user', '--setuid', '0', '--setgid', '0'];
  return [...words, 'sh', '-c', script, 'sh'];
}
