import { accessSync, constants, existsSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { delimiter, join } from 'node:path';
import { execPath, versions } from 'node:process';
import {
  becomeUser,
  canChangeUser,
  composeBubblewrap,
  isAdministrator,
  type SandboxCommand,
} from './commands.ts';
import { listProgramFiles, type WorkerProgram } from './program-files.ts';
import { isFiltered } from './seccomp-filter.ts';

/** Commands that set limits (a shell) and drop privileges (`bwrap` of bubblewrap, `setpriv` of util-linux). */
export interface Sandbox {
  readonly name: 'bubblewrap' | 'setpriv' | 'unconfined';
  /** Whether a worker has PID, mount, IPC and network namespaces, and a read-only root of the files it needs. */
  readonly isIsolated: boolean;
  /** Whether each worker can run as a different user. */
  readonly hasOwnUsers: boolean;
  /** Whether the command installs our seccomp filter. */
  readonly hasFilter: boolean;
  /** @param userId omit for the service's user @param memoryBytes limit of private writable memory */
  readonly compose: (userId: number | undefined, memoryBytes: number) => SpawnCommand;
}

export interface SpawnCommand extends SandboxCommand {
  readonly command: string;
}

export const SHELL = '/bin/sh';

/** Maximum descriptors: a worker has its channel, three standard streams and about twenty of Node's. */
const MAX_DESCRIPTORS = 64;

/** Bytes that V8 reserves for compiled code from Node 24 on; without them, Node does not start. */
const CODE_BYTES = Number.parseInt(versions.node, 10) >= 24 ? 512 * 1024 ** 2 : 0;

/** Stacks of libvips' eight threads (`VIPS_MAX_THREADS`), 8 MiB each. */
const STACK_BYTES = 8 * 8 * 1024 ** 2;

/** Bytes that count as private memory (RLIMIT_DATA), but are mostly unused. */
export const RESERVED_BYTES = CODE_BYTES + STACK_BYTES;

/** oom_score_adj of processes that the kernel kills first (proc(5)). */
export const FIRST_TO_KILL = 1000;

/** Shell commands that set limits; `$1` is the private memory in KiB. */
export const LIMITS = `
  echo ${FIRST_TO_KILL} >/proc/self/oom_score_adj
  ulimit -c 0
  ulimit -f 0
  ulimit -n ${MAX_DESCRIPTORS}
  ulimit -d "$1"
`;

/** Niceness during a start: at 15, a start took 50 s with four busy processes per core. */
const START_NICENESS = 5;

/**
 * Ignores failures, since `report.ts` reads the limits of the running process. Values are parameters, so that the shell
 * parses only this text.
 */
const LIMITS_SCRIPT = `
{ ${LIMITS} } 2>/dev/null
unset PWD OLDPWD SHLVL
shift
command -v nice >/dev/null && exec nice -n ${START_NICENESS} "$@"
exec "$@"
`;

/**
 * Yields the sandboxes that may work here, strongest first; the last confines nothing.
 *
 * @param refusals receives why others cannot work
 */
export async function* listSandboxes(
  worker: WorkerProgram,
  refusals: string[],
): AsyncGenerator<Sandbox> {
  for (const [name, create] of [
    ['bubblewrap', createBubblewrap],
    ['setpriv', createSetpriv],
  ] as const) {
    try {
      if (platform() !== 'linux') throw new Error('this is not Linux');
      yield await create(worker);
    } catch (error) {
      refusals.push(`${name}: ${(error as Error).message}`);
    }
  }
  yield UNCONFINED;
}

async function createBubblewrap(worker: WorkerProgram): Promise<Sandbox> {
  const { PATH } = worker.environment;
  findOnPath('bwrap', PATH);
  const programs = isAdministrator ? [execPath, findOnPath('setpriv', PATH)] : [execPath];
  const files = await listProgramFiles(worker, programs);
  return {
    name: 'bubblewrap',
    isIsolated: true,
    hasOwnUsers: canChangeUser,
    hasFilter: isFiltered(arch()),
    compose: (userId, memoryBytes) => limit(composeBubblewrap(userId, files), memoryBytes),
  };
}

function createSetpriv({ environment }: WorkerProgram): Sandbox {
  findOnPath('setpriv', environment.PATH);
  return {
    name: 'setpriv',
    isIsolated: false,
    hasOwnUsers: canChangeUser,
    hasFilter: false,
    compose: (userId, memoryBytes) => limit({ words: becomeUser(userId), inputs: [] }, memoryBytes),
  };
}

const UNCONFINED: Sandbox = {
  name: 'unconfined',
  isIsolated: false,
  hasOwnUsers: false,
  hasFilter: false,
  compose: (_, memoryBytes) =>
    platform() === 'linux' && existsSync(SHELL)
      ? limit({ words: [], inputs: [] }, memoryBytes)
      : { command: execPath, words: [], inputs: [] },
};

function limit({ words, inputs }: SandboxCommand, memoryBytes: number): SpawnCommand {
  const memoryKibibytes = Math.ceil((memoryBytes + RESERVED_BYTES) / 1024);
  const limits = ['-c', LIMITS_SCRIPT, 'sh', String(memoryKibibytes)];
  return { command: SHELL, words: [...limits, ...words, execPath], inputs };
}

/** @throws Error if the program is not installed */
export function findOnPath(name: string, path = ''): string {
  if (name.startsWith('/')) return name;
  const candidates = path.split(delimiter).map((directory) => join(directory, name));
  const found = candidates.find((candidate) => {
    try {
      accessSync(candidate, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  if (found === undefined) throw new Error(`${name} is not installed`);
  return found;
}
