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
 * The process that starts workers and waits for their ends. It opens no files: a process that is started closes all
 * that it has inherited before it is another program, `spawn` waits for that, and where one of these files is on a disk
 * that hangs, it waits as long as the disk does. The main process did, and served nothing meanwhile, hits neither.
 *
 * Not covered: standard error that is a file on such a disk; and the start of this process itself, once more, where it
 * was killed while a disk hangs.
 */

/** What is logged of a worker's standard error in its whole life. */
const STDERR_BOUNDS = { maxLines: 20, maxLineBytes: 500 };

/** Time for the rest of what an ended worker has written to be read; a child of its own may hold the pipe open. */
const LAST_LINES_MS = 1_000;

const ordinaryWorker = fileURLToPath(new URL('../child/main.js', import.meta.url));
const [, , workerFile = ordinaryWorker] = process.argv;
/** What a worker gets to know of our environment is all that this process has got. */
const program: WorkerProgram = { workerFile, environment: process.env as Record<string, string> };

/** Those that are still to be tried, and by name those that were found to work. */
const launchers = findLaunchers(program);
const found = new Map<string, Launcher>();

/** What kills each worker that has not ended. */
const kills = new Map<number, () => void>();

let isStopping = false;

process.on('message', (command: StarterCommand) => {
  if (command.kind === 'find') void find();
  else if (command.kind === 'start') void start(command);
  else if (command.kind === 'kill') kills.get(command.id)?.();
  else stop();
});
// The main process is gone, however it went: no one is left to work for. `disconnect` says so too, but not while a
// channel is on its way to the main process.
process.stdin.on('close', leave).on('error', leave).resume();
process.on('disconnect', leave);
// A terminal's ^C reaches the whole process group; the main process decides when workers end.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);

function say(message: StarterMessage, channel?: Socket): void {
  // That it does not arrive means that the main process is gone, which is noticed elsewhere.
  process.send?.(message, channel, {}, () => undefined);
}

async function find(): Promise<void> {
  const { value: launcher } = await launchers.next();
  if (launcher === undefined) return say({ kind: 'found' });
  found.set(launcher.name, launcher);
  const { launch, ...way } = launcher;
  say({ kind: 'found', way });
}

async function start({ id, by, memoryBytes }: StarterCommand & { kind: 'start' }): Promise<void> {
  const end = (ending: string): void => {
    kills.delete(id);
    say({ kind: 'ended', id, ending });
    if (isStopping && kills.size === 0) leave();
  };
  let isKilled = isStopping;
  kills.set(id, () => {
    isKilled = true;
  });
  try {
    // Another process like this one has found it, and has ended.
    const launcher = found.get(by) ?? (await launcherNamed(by, program));
    found.set(by, launcher);
    if (isKilled) end('SIGKILL');
    else follow(id, launcher, spawnWorker(launcher, program, memoryBytes), end);
  } catch (error) {
    // Some failures of `spawn` are thrown (ENOMEM), others are events (EAGAIN).
    end(String(error));
  }
}

/** Tells the main process of a worker, from its start to its end. */
function follow(
  id: number,
  { processes }: Launcher,
  child: ChildProcess,
  end: (ending: string) => void,
): void {
  const hasOwnProcesses = processes === 'own';
  const kill = (): void => killWorker(child, hasOwnProcesses);
  kills.set(id, kill);
  child.on('error', (error) => {
    // What could not be spawned at all never exits.
    if (child.pid === undefined) end(error.message);
  });
  if (child.pid === undefined) return;
  // A pipe of `spawn` is a socket, and there is none if no descriptor was left for it.
  const channel = child.stdio?.[CHANNEL_DESCRIPTOR] as Socket | undefined;
  if (channel === undefined) kill();
  else say({ kind: 'started', id, processId: child.pid }, channel);
  const { stderr } = child;
  if (stderr) readLines(stderr, STDERR_BOUNDS, (line) => say({ kind: 'line', id, line }));
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
  if (kills.size === 0) leave();
}

function leave(): void {
  for (const kill of kills.values()) kill();
  process.exit();
}
