import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { FIRST_INPUT_DESCRIPTOR } from '../protocol.ts';
import type { ProgramFiles } from './program-files.ts';

const NAMESPACES = [
  ...['unshare', '--user', '--map-root-user', '--mount', '--net', '--ipc', '--pid', '--uts'],
  ...['--fork', '--kill-child', '--'],
];

/**
 * Makes a root in a folder that every Linux has and no program lies in, binds there what a worker needs, and enters it.
 * Within, no privilege is left to leave it by, and a process whose root is not that of its namespace gets no user
 * namespace (user_namespaces(7)).
 *
 * Two descriptors have the folders and files to make, each with a NUL after it, a third what to bind there, in lines;
 * arguments before `--` are symbolic links: where they lead, and where they are.
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
 * What starts a program in namespaces and a root of its own by `unshare`, `mount` and `chroot`, where bubblewrap is not
 * installed. There is no filter of system calls.
 *
 * @param before what `unshare` is started by
 * @param inside what starts the program within; it drops the privileges by which the root was made
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

/** Paths below the new root, each with a NUL after it. */
function list(paths: readonly string[]): Uint8Array {
  return Buffer.from([...new Set(paths)].map((path) => `.${path}\0`).join(''));
}
