import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { readLines } from '../bounded-lines.ts';
import {
  findLaunchers,
  type Launcher,
  launcherNamed,
  type WorkerProgram,
} from '../confinement/launchers.ts';
import { describeEnding, killWorker } from '../process-tree.ts';
import { CHANNEL_DESCRIPTOR } from '../protocol.ts';
import type { StarterCommand, StarterMessage } from './messages.ts';
import { spawnWorker } from './spawn.ts';

/**
 * The process that starts workers and waits for their ends. It opens no files: a started process closes all inherited
 * files before it becomes another program, `spawn` waits for this, and blocks as long as one of these files is on a
 * hanging disk. When the main process started workers itself, it blocked and served nothing, not even hits.
 *
 * Not covered: standard error that is a file on such a disk; and the start of this process itself, if it was killed
 * while a disk hangs.
 */

/** Bounds of a worker's standard error that is logged, over its whole life. */
const STDERR_BOUNDS = { maxLines: 20, maxLineBytes: 500 };

/** Time to read the rest of an ended worker's output, in milliseconds; its child may hold the pipe open. */
const LAST_LINES_MS = 1_000;

/**
 * Time for a killed worker to end, in milliseconds; after it, the worker counts as ended. No signal reaches a process
 * that waits for a hanging disk. Less than the main process allows for this (`KILL_TIMEOUT_MS`).
 */
const END_TIMEOUT_MS = 5_000;

const ordinaryWorker = fileURLToPath(new URL('../child/main.js', import.meta.url));
const [, , workerFile = ordinaryWorker] = process.argv;
/** The worker's environment is that of this process. */
const program: WorkerProgram = { workerFile, environment: process.env as Record<string, string> };

/** Sandboxes that are still to be probed, and by name those that work. */
const launchers = findLaunchers(program);
const found = new Map<string, Launcher>();

/** Functions that kill each worker that has neither ended nor been given up. */
const kills = new Map<number, () => void>();

let isStopping = false;

process.on('message', (command: StarterCommand) => {
  if (command.kind === 'find') void find();
  else if (command.kind === 'start') void start(command);
  else if (command.kind === 'kill') kills.get(command.id)?.();
  else stop();
});
// The main process is gone, however it ended: no work is left. `disconnect` reports this too, but not while a channel
// is in transfer to the main process.
process.stdin.on('close', exit).on('error', exit).resume();
process.on('disconnect', exit);
// A terminal's ^C reaches the whole process group; the main process decides when workers end.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);

function send(message: StarterMessage, channel?: Socket): void {
  // A failed delivery means that the main process is gone, which is noticed elsewhere.
  process.send?.(message, channel, {}, () => undefined);
}

async function find(): Promise<void> {
  const { value: launcher } = await launchers.next();
  if (launcher === undefined) return send({ kind: 'found' });
  found.set(launcher.name, launcher);
  const { launch, ...way } = launcher;
  send({ kind: 'found', way });
}

async function start({ id, by, memoryBytes }: StarterCommand & { kind: 'start' }): Promise<void> {
  const end = (ending: string): void => {
    if (!kills.delete(id)) return;
    send({ kind: 'ended', id, ending });
    if (isStopping && kills.size === 0) exit();
  };
  let isKilled = isStopping;
  kills.set(id, () => {
    isKilled = true;
  });
  try {
    // An earlier starter process has found the sandbox, and has ended.
    const launcher = found.get(by) ?? (await launcherNamed(by, program));
    found.set(by, launcher);
    if (isKilled) end('SIGKILL');
    else follow(id, launcher, spawnWorker(launcher, program, memoryBytes), end);
  } catch (error) {
    // `spawn` throws some failures (ENOMEM), and emits others as events (EAGAIN).
    end(String(error));
  }
}

/** Reports a worker to the main process, from its start to its end. */
function follow(
  id: number,
  { processes }: Launcher,
  child: ChildProcess,
  end: (ending: string) => void,
): void {
  const hasOwnProcesses = processes === 'own';
  const kill = (): void => {
    killWorker(child, hasOwnProcesses);
    setTimeout(() => end('no end although it was killed'), END_TIMEOUT_MS).unref();
  };
  kills.set(id, kill);
  child.on('error', (error) => {
    // A process that could not be spawned never exits.
    if (child.pid === undefined) end(error.message);
  });
  if (child.pid === undefined) return;
  // A pipe of `spawn` is a socket, and is missing if no descriptor was left.
  const channel = child.stdio?.[CHANNEL_DESCRIPTOR] as Socket | undefined;
  if (channel === undefined) kill();
  else send({ kind: 'started', id, processId: child.pid }, channel);
  const { stderr } = child;
  if (stderr) readLines(stderr, STDERR_BOUNDS, (line) => send({ kind: 'line', id, line }));
  child.once('exit', (code, signal) => {
    const ending = describeEnding(code, signal, hasOwnProcesses);
    if (stderr === null || stderr.closed) return end(ending);
    stderr.once('close', () => end(ending));
    setTimeout(() => stderr.destroy(), LAST_LINES_MS).unref();
  });
}

function stop(): void {
  isStopping = true;
  for (const kill of kills.values()) kill();
  if (kills.size === 0) exit();
}

function exit(): void {
  for (const kill of kills.values()) kill();
  process.exit();
}
