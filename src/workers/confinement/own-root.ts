import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { FIRST_INPUT_DESCRIPTOR } from '../protocol.ts';
import type { ProgramFiles } from './program-files.ts';

const NAMESPACES = [
  ...['unshare', '--user', '--map-root-user', '--mount', '--net', '--ipc', '--pid', '--uts'],
  ...['--fork', '--kill-child', '--'],
];

/**
 * Creates a root in a folder that every Linux has and no program lies in, binds the worker's files there, and enters
 * it. Within, no privilege remains to leave the root, and a process whose root is not that of its namespace cannot
 * create a user namespace (user_namespaces(7)).
 *
 * Two descriptors contain the folders and files to create, each followed by a NUL, a third the paths to bind, in lines;
 * arguments before `--` are symbolic links: target and path.
 */
const [FOLDERS, FILES, BOUND] = [0, 1, 2].map((index) => FIRST_INPUT_DESCRIPTOR + index);
const SCRIPT = `
set -e
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs /sys
cd /sys
xargs -0 mkdir -p -- <&${FOLDERS}
xargs -0 touch -- <&${FILES}
while [ "$1" != -- ]; do
  ln -s -- "$1" ".$2"
  shift 2
done
shift
while IFS= read -r path; do
  mount -o bind,ro,nosuid,nodev -- "$path" "/sys$path"
done <&${BOUND}
mount -t proc -o ro,nosuid,nodev,noexec proc /sys/proc
mount -o remount,bind,ro,nosuid,nodev /sys
exec chroot /sys "$@" ${FOLDERS}<&- ${FILES}<&- ${BOUND}<&-
`;

/**
 * Composes the command that starts a program in namespaces and a root of its own by `unshare`, `mount` and `chroot`, if
 * bubblewrap is not installed. It has no filter of system calls.
 *
 * @param before command that starts `unshare`
 * @param inside command that starts the program within; drops the privileges that created the root
 */
export function composeOwnRoot(
  before: readonly string[],
  { paths, links }: ProgramFiles,
  inside: readonly string[],
): { readonly words: readonly string[]; readonly inputs: readonly Uint8Array[] } {
  const isFolder = (path: string): boolean => statSync(path).isDirectory();
  const files = paths.filter((path) => !isFolder(path));
  const folders = [...paths.filter(isFolder), ...[...files, ...links.keys()].map(dirname), '/proc'];
  if (paths.some((path) => path.includes('\n'))) throw new Error('a path has a line end in it');
  const linkWords = [...links].flatMap(([link, target]) => [target, link]);
  return {
    words: [...before, ...NAMESPACES, '/bin/sh', '-c', SCRIPT, 'sh', ...linkWords, '--', ...inside],
    inputs: [list(folders), list(files), Buffer.from(paths.map((path) => `${path}\n`).join(''))],
  };
}

/** Lists paths below the new root, each followed by a NUL. */
function list(paths: readonly string[]): Uint8Array {
  return Buffer.from([...new Set(paths)].map((path) => `.${path}\0`).join(''));
}
