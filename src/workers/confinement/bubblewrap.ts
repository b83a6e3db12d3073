import { arch } from 'node:os';
import { dirname } from 'node:path';
import { FIRST_INPUT_DESCRIPTOR } from '../protocol.ts';
import type { ProgramFiles } from './program-files.ts';
import { assembleFilter, isFiltered } from './seccomp-filter.ts';

/**
 * No `--new-session`: a new session would be a scheduling group of its own, in which niceness has no effect on other
 * workers. Instead, no terminal is passed on. The first process of the namespace is bubblewrap's own (no `--as-pid-1`),
 * so that signals end Node as usual.
 */
const NAMESPACES = [
  ...['--unshare-pid', '--unshare-ipc', '--unshare-net', '--unshare-uts'],
  ...['--die-with-parent', '--cap-drop', 'ALL'],
];

/** Capabilities that `setpriv` needs to change the user, and drops by doing so. */
const TO_BECOME_ANOTHER_USER = ['CAP_SETUID', 'CAP_SETGID', 'CAP_SETPCAP'];

/** Read-only, so that a worker can neither protect itself from the OOM killer nor leave its scheduling group. */
const PROCESSES = ['--proc', '/proc', '--remount-ro', '/proc'];

/**
 * Composes the command that starts a program by bubblewrap: the program sees a root with its own files and processes,
 * and no network. The list of files is passed through a descriptor, so that `ps` stays readable.
 *
 * @param before command that starts bubblewrap
 * @param inside command that starts the program within; `setpriv`, if the user changes there
 */
export function composeBubblewrap(
  before: readonly string[],
  { paths, links }: ProgramFiles,
  inside: readonly string[],
): { readonly words: readonly string[]; readonly inputs: readonly Uint8Array[] } {
  const processor = arch();
  const filter = isFiltered(processor) ? assembleFilter(processor) : undefined;
  const options = [
    ...NAMESPACES,
    ...(inside.length > 0 ? TO_BECOME_ANOTHER_USER.flatMap((it) => ['--cap-add', it]) : []),
    ...listParents([...paths, ...links.keys()]).flatMap((folder) => [
      '--perms',
      '0755',
      '--dir',
      folder,
    ]),
    ...paths.flatMap((path) => ['--ro-bind', path, path]),
    ...[...links].flatMap(([link, target]) => ['--symlink', target, link]),
    ...PROCESSES,
    ...['--remount-ro', '/', '--chdir', '/'],
    ...(filter === undefined ? [] : ['--seccomp', String(FIRST_INPUT_DESCRIPTOR + 1)]),
  ];
  return {
    words: [...before, 'bwrap', '--args', String(FIRST_INPUT_DESCRIPTOR), '--', ...inside],
    inputs: [
      Buffer.from(options.map((option) => `${option}\0`).join('')),
      ...(filter === undefined ? [] : [filter]),
    ],
  };
}

/** Returns the parent folders of paths, from the top down; bubblewrap would create them for their owner only. */
function listParents(paths: readonly string[]): string[] {
  const parents = new Set<string>();
  for (const path of paths) {
    for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder)) {
      parents.add(folder);
    }
  }
  return [...parents].sort();
}
