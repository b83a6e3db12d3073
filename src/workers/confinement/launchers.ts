import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import type { Socket } from 'node:net';
import { platform } from 'node:os';
import { delimiter, join } from 'node:path';
import { execPath, getuid, versions } from 'node:process';
import { readLines } from '../bounded-lines.ts';
import { FIRST_INPUT_DESCRIPTOR } from '../protocol.ts';
import { findModuleFiles, type ProgramFiles, withPrograms } from './program-files.ts';
import { UserIds } from './user-ids.ts';
import { type Way, type WorkingWay, waysFor } from './ways.ts';

/**
 * Starts of worker processes with fewer rights than the main process: memory, files, processes, network, privileges.
 * Programs restrict the process before Node runs, and replace or start each other: a shell sets limits, `setpriv` and
 * `unshare` (util-linux) or `bwrap` (bubblewrap) drop the rest, and the last one becomes Node.
 */

/** A worker program. */
export interface WorkerProgram {
  /** Path of the worker's compiled entry. */
  readonly workerFile: string;
  /** Whole environment of the worker; without secrets. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Command of one start of a worker. */
export interface Launch {
  readonly command: string;
  /** Arguments before Node's own. */
  readonly args: readonly string[];
  /** Contents for the descriptors after the channel's, each to its end. */
  readonly inputs: readonly Uint8Array[];
  /** Must be called once the process has ended. */
  readonly release: () => void;
}

/** A sandbox that works on this host. */
export interface Launcher extends WorkingWay {
  /**
   * @param niceness of the starting process
   * @param memoryBytes bound of its private writable memory
   */
  readonly launch: (niceness: number, memoryBytes: number) => Launch;
}

const SHELL = '/bin/sh';

/** Most descriptors: a worker has its channel, three standard streams and some twenty of Node's own. */
const MAX_DESCRIPTORS = 64;

/**
 * Bytes that V8 reserves for compiled code from Node 24 on. They count as private memory, though hardly any is ever
 * used: without room for them, Node does not start.
 */
export const RESERVED_BYTES = Number.parseInt(versions.node, 10) >= 24 ? 512 * 1024 ** 2 : 0;

/** oom_score_adj of processes that are killed before all others (proc(5)). */
export const FIRST_TO_KILL = 1000;

/** Time to probe a sandbox, in milliseconds; it takes some 50 ms. */
const PROBE_TIMEOUT_MS = 10_000;

/** Enough memory for Node to report its version. */
const PROBE_MEMORY_BYTES = 256 * 1024 ** 2;

/** Bounds of the error message that is read from a failed probe. */
const REASON_BOUNDS = { maxLines: 1, maxLineBytes: 300 };

/**
 * Sets all limits that it can and ignores failures; the result is read from the process. The values are positional
 * parameters: only this text is ever parsed as shell.
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

const userIds = new UserIds();

/**
 * Yields the sandboxes that this host supports, strongest first. Skips those that need a shell, `util-linux` or
 * bubblewrap where these are missing or the system refuses; if none works (macOS, an image without a shell), Node
 * starts unconfined.
 */
export async function* findLaunchers(program: WorkerProgram): AsyncGenerator<Launcher> {
  const refusals = new Set<string>();
  let isFound = false;
  for (const way of listWays()) {
    try {
      const launcher = await createLauncher(way, program);
      await probe(launcher.launch(0, PROBE_MEMORY_BYTES), way, program);
      isFound = true;
      yield { ...launcher, refusals: [...refusals] };
    } catch (error) {
      refusals.add(`${way.name}: ${error instanceof Error ? error.message : error}`);
    }
  }
  if (!isFound) yield unconfined;
}

/**
 * Returns a sandbox that was found to work on this host before.
 *
 * @param name of the sandbox
 * @throws Error if a program or a part of the worker is missing
 */
export async function launcherNamed(name: string, program: WorkerProgram): Promise<Launcher> {
  const way = listWays().find((each) => each.name === name);
  return way === undefined ? unconfined : createLauncher(way, program);
}

function listWays(): readonly Way[] {
  return platform() === 'linux' ? waysFor({ isRoot: isRoot() }) : [];
}

function isRoot(): boolean {
  return getuid?.() === 0;
}

async function createLauncher(way: Way, program: WorkerProgram): Promise<Launcher> {
  const files = await listFiles(way, program);
  const launch = (niceness: number, memoryBytes: number): Launch => {
    const userId = isRoot() ? userIds.take() : undefined;
    const { words, inputs = [] } = way.compose({ userId, files });
    const memoryKibibytes = Math.ceil((memoryBytes + RESERVED_BYTES) / 1024);
    const values = [MAX_DESCRIPTORS, memoryKibibytes, niceness].map(String);
    return {
      command: SHELL,
      args: ['-c', LIMITS_SCRIPT, 'sh', ...values, ...words, execPath],
      inputs,
      release: () => {
        if (userId !== undefined) userIds.give(userId);
      },
    };
  };
  return { ...way.walls, name: way.name, refusals: [], launch };
}

/** Starts Node unconfined. */
const unconfined: Launcher = {
  name: 'nothing',
  processes: 'shared',
  files: 'shared',
  network: 'shared',
  user: 'shared',
  systemCalls: 'all',
  refusals: [],
  launch: () => ({ command: execPath, args: [], inputs: [], release: () => undefined }),
};

/**
 * Lists the files that a worker sees in its own root; empty for a sandbox without one.
 *
 * @throws Error if a program or a part of the worker is missing
 */
async function listFiles(
  { needs = [], rootPrograms }: Way,
  { workerFile, environment }: WorkerProgram,
): Promise<ProgramFiles> {
  for (const name of needs) findOnPath(name, environment.PATH);
  if (rootPrograms === undefined) return { paths: [], links: new Map() };
  const programs = rootPrograms.map((name) => findOnPath(name, environment.PATH));
  const module = await findModuleFiles(workerFile, environment);
  return withPrograms(module, [execPath, ...programs], environment);
}

/** @throws Error if no program has the name */
function findOnPath(name: string, path = ''): string {
  if (name.startsWith('/')) return name;
  const candidates = path.split(delimiter).map((folder) => join(folder, name));
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

/**
 * Starts Node once in a sandbox, or, if this has no root of its own, a shell that checks whether the worker can be read
 * and run.
 *
 * @throws Error with the reason of a failure
 */
function probe(
  launch: Launch,
  way: Way,
  { workerFile, environment }: WorkerProgram,
): Promise<void> {
  const test = [SHELL, '-c', '[ -r "$1" ] && [ -x "$2" ]', 'sh', workerFile, execPath];
  const args =
    way.rootPrograms === undefined
      ? [...launch.args.slice(0, -1), ...test]
      : [...launch.args, '--version'];
  return new Promise<void>((resolve, reject) => {
    const child = spawn(launch.command, args, {
      env: environment,
      stdio: ['ignore', 'ignore', 'pipe', 'ignore', ...launch.inputs.map(() => 'pipe' as const)],
      timeout: PROBE_TIMEOUT_MS,
      killSignal: 'SIGKILL',
    });
    const lines: string[] = [];
    if (child.stderr) readLines(child.stderr, REASON_BOUNDS, (line) => lines.push(line));
    writeInputs(child, launch);
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(lines[0] ?? `ended with ${signal ?? `status ${code}`}`));
    });
  }).finally(launch.release);
}

/** Writes the inputs of the programs that start a process; an early end of these is reported elsewhere. */
export function writeInputs({ stdio }: ChildProcess, { inputs }: Launch): void {
  for (const [index, bytes] of inputs.entries()) {
    // A pipe of `spawn` is a socket, and is missing if no descriptor was left.
    const input = stdio?.[FIRST_INPUT_DESCRIPTOR + index] as Socket | undefined;
    input?.on('error', () => undefined);
    input?.end(bytes);
  }
}
