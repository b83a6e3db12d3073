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
 * How worker processes are started with less than the main process may do: memory, files, processes, network,
 * privileges. It happens before Node runs, by programs that replace or start each other: a shell sets limits, `setpriv`
 * and `unshare` (util-linux) or `bwrap` (bubblewrap) drop the rest, the last one becomes Node.
 */

/** A worker that is to be started. */
export interface WorkerProgram {
  /** Path of its compiled entry. */
  readonly workerFile: string;
  /** All that it gets to know of our environment; no secret. */
  readonly environment: Readonly<Record<string, string>>;
}

/** One start of a worker. */
export interface Launch {
  readonly command: string;
  /** What goes before Node's own arguments. */
  readonly args: readonly string[];
  /** What is to be written to the descriptors after the channel's, each to its end. */
  readonly inputs: readonly Uint8Array[];
  /** To be called once the process has ended. */
  readonly release: () => void;
}

/** Starts workers in a way that works here. */
export interface Launcher extends WorkingWay {
  /**
   * @param niceness what the process starts with
   * @param memoryBytes private writable memory that it may have
   */
  readonly launch: (niceness: number, memoryBytes: number) => Launch;
}

const SHELL = '/bin/sh';

/** A worker has its channel, three standard streams and some twenty descriptors of Node's own. */
const MAX_DESCRIPTORS = 64;

/**
 * What V8 reserves for compiled code from Node 24 on, in bytes. It counts as private memory, though hardly any of it is
 * ever used: without room for it, Node does not start.
 */
export const RESERVED_BYTES = Number.parseInt(versions.node, 10) >= 24 ? 512 * 1024 ** 2 : 0;

/** oom_score_adj of what is killed before all others (proc(5)). */
export const FIRST_TO_KILL = 1000;

/** Time to find out whether a way works; it takes some 50 ms, in milliseconds. */
const PROBE_TIMEOUT_MS = 10_000;

/** What Node needs to say its version, and more. */
const PROBE_MEMORY_BYTES = 256 * 1024 ** 2;

/** What is read of the reason why one does not. */
const REASON_BOUNDS = { maxLines: 1, maxLineBytes: 300 };

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

const userIds = new UserIds();

/**
 * The ways to start a worker that work here, the most confining first. Those that need a shell, `util-linux` or
 * bubblewrap are left out where these are missing or the system refuses; without any (macOS, an image without a shell),
 * Node is started as it is.
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
  if (!isFound) yield startAsItIs;
}

/**
 * A way to start a worker that has been found to work here before.
 *
 * @param name of the way
 * @throws Error if a program or a part of the worker is missing
 */
export async function launcherNamed(name: string, program: WorkerProgram): Promise<Launcher> {
  const way = listWays().find((each) => each.name === name);
  return way === undefined ? startAsItIs : createLauncher(way, program);
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

/** Node as it is. */
const startAsItIs: Launcher = {
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
 * What a worker sees in a root of its own; nothing for a way without one.
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

/** @throws Error if there is no program of that name */
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
 * Starts Node once in a way, or, where that is not in a root of its own, a shell that looks whether the worker can be
 * read and run.
 *
 * @throws Error with the reason, if that does not work
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

/** Writes what the programs read that start a process; that one has ended is told elsewhere. */
export function writeInputs({ stdio }: ChildProcess, { inputs }: Launch): void {
  for (const [index, bytes] of inputs.entries()) {
    // A pipe of `spawn` is a socket, and there is none if no descriptor was left for it.
    const input = stdio?.[FIRST_INPUT_DESCRIPTOR + index] as Socket | undefined;
    input?.on('error', () => undefined);
    input?.end(bytes);
  }
}
