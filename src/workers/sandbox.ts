import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { getPriority, platform } from 'node:os';
import { execPath } from 'node:process';
import type { Lane } from '../pipeline/ports.ts';

/**
 * How worker processes are started with less than the main process may do: memory, files, network,
 * privileges. It happens before Node runs, by programs that replace each other in one process: a
 * shell sets limits, `setpriv` and `unshare` (util-linux) drop the rest, the last one becomes Node.
 */

/** What a worker is kept from, as found on a running one; `undefined`: not bounded. */
export interface Confinement {
  /** `none`: a network namespace of its own, in which no interface is up. */
  readonly network: 'none' | 'shared';
  /**
   * `namespace`: a user namespace of its own, so that it can neither read the memory nor the
   * environment of any process; `nobody`: another user than ours; `shared`: ours, and whatever that
   * user may read.
   */
  readonly user: 'namespace' | 'nobody' | 'nobody in a namespace' | 'shared';
  /** Private writable memory (RLIMIT_DATA), in bytes. What it shares with children does not count. */
  readonly memoryBytes: number | undefined;
  /** Size of a file it may write (RLIMIT_FSIZE), in bytes. */
  readonly fileBytes: number | undefined;
  /** Open descriptors, sockets included (RLIMIT_NOFILE). */
  readonly descriptors: number | undefined;
  /** No program it starts can have more privileges (prctl PR_SET_NO_NEW_PRIVS). */
  readonly noNewPrivileges: boolean;
  /** Whether the kernel kills it first when memory runs out (oom_score_adj). */
  readonly isFirstToKill: boolean;
  /** Niceness by lane; the main process's is 0. */
  readonly priority: Readonly<Record<Lane, number | undefined>>;
}

/** A way to start a worker. */
export interface Launcher {
  readonly command: string;
  /** What goes before Node's own arguments. */
  readonly argsFor: (niceness: number) => readonly string[];
  readonly network: Confinement['network'];
  readonly user: Confinement['user'];
}

const SHELL = '/bin/sh';

/** A worker has its channel, three standard streams and some twenty descriptors of Node's own. */
const MAX_DESCRIPTORS = 64;

/** oom_score_adj of what is killed before all others (proc(5)). */
const FIRST_TO_KILL = 1000;

/** Time to find out whether a launcher works; it takes some 5 ms, in milliseconds. */
const PROBE_TIMEOUT_MS = 5_000;

/**
 * Sets what it can and goes on without what it cannot; what came of it is read from the process. The
 * values are positional parameters: no text but this one is ever read as shell.
 */
const LIMITS_SCRIPT = `
{
  echo ${FIRST_TO_KILL} >/proc/self/oom_score_adj
  ulimit -c 0
  ulimit -f 0
  ulimit -n "$1"
  ulimit -d "$2"
} 2>/dev/null
unset PWD OLDPWD SHLVL
niceness=$3
shift 3
command -v nice >/dev/null && exec nice -n "$niceness" "$@"
exec "$@"
`;

const NO_NEW_PRIVILEGES = ['setpriv', '--no-new-privs', '--'];

/** Of no file on this machine the owner; takes a start as root. Without a name: images have no passwd. */
const AS_NOBODY = [
  'setpriv',
  ...['--reuid', '65534', '--regid', '65534', '--clear-groups', '--no-new-privs', '--'],
];

/** These need no privileges, unless the kernel or a container's seccomp profile refuses. */
const OWN_NAMESPACES = ['unshare', '--user', '--net', '--'];

/** For root alone. */
const OWN_NETWORK = ['unshare', '--net', '--'];

type Wrapper = Pick<Launcher, 'network' | 'user'> & { readonly words: readonly string[] };

/** From the most to the least confined; the first that works is taken. */
const WRAPPERS: readonly Wrapper[] = [
  { network: 'none', user: 'nobody in a namespace', words: [...AS_NOBODY, ...OWN_NAMESPACES] },
  { network: 'none', user: 'nobody', words: [...OWN_NETWORK, ...AS_NOBODY] },
  { network: 'none', user: 'namespace', words: [...OWN_NAMESPACES, ...NO_NEW_PRIVILEGES] },
  { network: 'none', user: 'shared', words: [...OWN_NETWORK, ...NO_NEW_PRIVILEGES] },
  { network: 'shared', user: 'nobody', words: AS_NOBODY },
  { network: 'shared', user: 'shared', words: NO_NEW_PRIVILEGES },
  { network: 'shared', user: 'shared', words: [] },
];

/**
 * The ways to start a worker that work here, the most confining first. Those that need a shell or
 * `util-linux` are left out where these are missing or the system refuses; without any (macOS, an
 * image without a shell), Node is started as it is.
 *
 * @param memoryBytes private writable memory a worker may have
 */
export async function* findLaunchers(
  workerFile: string,
  memoryBytes: number,
): AsyncGenerator<Launcher> {
  let isFound = false;
  for (const { network, user, words } of platform() === 'linux' ? WRAPPERS : []) {
    const prefixFor = (niceness: number): string[] => {
      const values = [MAX_DESCRIPTORS, Math.ceil(memoryBytes / 1024), niceness].map(String);
      return ['-c', LIMITS_SCRIPT, 'sh', ...values, ...words];
    };
    if (await canReach(workerFile, prefixFor(0))) {
      isFound = true;
      const argsFor = (niceness: number) => [...prefixFor(niceness), execPath];
      yield { command: SHELL, argsFor, network, user };
    }
  }
  if (!isFound) yield { command: execPath, argsFor: () => [], network: 'shared', user: 'shared' };
}

/** Whether a process can be started so, and may still read and run what a worker is made of. */
function canReach(workerFile: string, prefix: readonly string[]): Promise<boolean> {
  const test = [SHELL, '-c', '[ -r "$1" ] && [ -x "$2" ]', 'sh', workerFile, execPath];
  return new Promise((resolve) => {
    const probe = spawn(SHELL, [...prefix, ...test], {
      stdio: 'ignore',
      timeout: PROBE_TIMEOUT_MS,
    });
    probe.once('error', () => resolve(false));
    probe.once('exit', (code) => resolve(code === 0));
  });
}

/** What a running worker is kept from, as the kernel shows it; the rest is what the launcher has set. */
export function readConfinement(
  { network, user }: Launcher,
  processIds: Readonly<Record<Lane, number | undefined>>,
): Confinement {
  const processId = processIds.light ?? processIds.heavy;
  const limits = readProcessFile(processId, 'limits');
  const limitOf = (name: string): number | undefined => {
    const [, value] = new RegExp(`^${name} +(\\d+) `, 'm').exec(limits) ?? [];
    return value === undefined ? undefined : Number(value);
  };
  return {
    network,
    user,
    memoryBytes: limitOf('Max data size'),
    fileBytes: limitOf('Max file size'),
    descriptors: limitOf('Max open files'),
    noNewPrivileges: /^NoNewPrivs:\t1$/m.test(readProcessFile(processId, 'status')),
    isFirstToKill: Number(readProcessFile(processId, 'oom_score_adj')) === FIRST_TO_KILL,
    priority: { light: readPriority(processIds.light), heavy: readPriority(processIds.heavy) },
  };
}

function readPriority(processId: number | undefined): number | undefined {
  try {
    return processId === undefined ? undefined : getPriority(processId);
  } catch {
    return undefined; // it has just ended
  }
}

/** proc(5); empty where there is none. */
function readProcessFile(processId: number | undefined, name: string): string {
  try {
    return readFileSync(`/proc/${processId}/${name}`, 'utf8');
  } catch {
    return '';
  }
}
