import { arch, platform } from 'node:os';
import { dirname } from 'node:path';
import { readProcessFile } from '../process-tree.ts';
import { FIRST_INPUT_DESCRIPTOR } from '../protocol.ts';
import type { ProgramFiles } from './program-files.ts';
import { assembleFilter, isFiltered } from './seccomp-filter.ts';

export interface SandboxCommand {
  readonly words: readonly string[];
  /** Contents of the descriptors from `FIRST_INPUT_DESCRIPTOR` on. */
  readonly inputs: readonly Uint8Array[];
}

/** Capabilities by bit (capabilities(7)). */
const CAP_SETGID = 6;
const CAP_SETUID = 7;
const CAP_SYS_ADMIN = 21;

/** Whether the service can start processes as another user; a container may deny this to root. */
export const canChangeUser = isRootWith(CAP_SETGID, CAP_SETUID);

/**
 * Whether root creates namespaces, and the user changes inside. Otherwise the user changes first, and the namespaces
 * belong to a user namespace, as in most containers.
 */
export const isAdministrator = isRootWith(CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN);

function isRootWith(...capabilities: readonly number[]): boolean {
  if (platform() !== 'linux') return false;
  const status = readProcessFile('self', 'status');
  const [, mask = '0'] = /^CapEff:\t([\da-f]+)$/m.exec(status) ?? [];
  const isSet = (bit: number): boolean => ((BigInt(`0x${mask}`) >> BigInt(bit)) & 1n) === 1n;
  return /^Uid:\t0\t/m.test(status) && capabilities.every(isSet);
}

const WITHOUT_CAPABILITIES = ['--bounding-set=-all', '--inh-caps=-all'];

/** Changes the user (by number: passwd has no name) and forbids new privileges. The program ends with its parent. */
export function becomeUser(userId: number | undefined, ...options: readonly string[]): string[] {
  const user =
    userId === undefined ? [] : ['--reuid', `${userId}`, '--regid', `${userId}`, '--clear-groups'];
  return ['setpriv', ...user, ...options, '--pdeathsig', 'KILL', '--no-new-privs', '--'];
}

/**
 * Namespaces of a program that bubblewrap starts. The program is the first process of its PID namespace (`--as-pid-1`):
 * bubblewrap's own (`monitor_child`) would remain defunct if the service is PID 1 of a container.
 */
export const BUBBLEWRAP_NAMESPACES = [
  ...['--unshare-pid', '--as-pid-1', '--unshare-ipc', '--unshare-net', '--unshare-uts'],
  ...['--die-with-parent', '--cap-drop', 'ALL'],
];

/** No `--new-session`: niceness has no effect across sessions, and no terminal is passed on. */
const BUBBLEWRAP_OPTIONS = [
  ...BUBBLEWRAP_NAMESPACES,
  // For `setpriv`, which drops them.
  ...(isAdministrator ? ['CAP_SETUID', 'CAP_SETGID', 'CAP_SETPCAP'] : []).flatMap((capability) => [
    '--cap-add',
    capability,
  ]),
];

/** Read-only, so that a worker can neither evade the OOM killer nor leave its scheduling group. */
const PROCESSES = ['--proc', '/proc', '--remount-ro', '/proc'];

/**
 * Starts a program in bubblewrap, with a root of its own files and without network. A descriptor passes the list of
 * files, so that `ps` stays readable.
 *
 * @param userId user of the program; omit for the service's user
 */
export function composeBubblewrap(userId: number | undefined, files: ProgramFiles): SandboxCommand {
  const processor = arch();
  const filters = isFiltered(processor) ? [assembleFilter(processor)] : [];
  const options = [...BUBBLEWRAP_OPTIONS, ...bindFiles(files), ...PROCESSES];
  const { words, inputs } = runBubblewrap(options, filters);
  return {
    words: isAdministrator
      ? [...words, ...becomeUser(userId, ...WITHOUT_CAPABILITIES)]
      : [...(userId === undefined ? [] : becomeUser(userId)), ...words],
    inputs,
  };
}

export function bindFiles({ paths, links }: ProgramFiles): string[] {
  return [
    ...listParents([...paths, ...links.keys()]).flatMap((directory) => [
      ...['--perms', '0755', '--dir', directory],
    ]),
    ...paths.flatMap((path) => ['--ro-bind', path, path]),
    ...[...links].flatMap(([link, target]) => ['--symlink', target, link]),
  ];
}

export function runBubblewrap(
  options: readonly string[],
  filters: readonly Uint8Array[],
): SandboxCommand {
  const all = [
    ...options,
    ...['--remount-ro', '/', '--chdir', '/'],
    ...filters.flatMap(() => ['--seccomp', String(FIRST_INPUT_DESCRIPTOR + 1)]),
  ];
  return {
    words: ['bwrap', '--args', String(FIRST_INPUT_DESCRIPTOR), '--'],
    inputs: [Buffer.from(all.map((option) => `${option}\0`).join('')), ...filters],
  };
}

/** Lists the parents of paths from the top down, which bubblewrap would make accessible only to their owner. */
function listParents(paths: readonly string[]): string[] {
  const parents = new Set<string>();
  for (const path of paths) {
    for (
      let directory = dirname(path);
      directory !== dirname(directory);
      directory = dirname(directory)
    ) {
      parents.add(directory);
    }
  }
  return [...parents].sort();
}
