import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { readLines } from '../bounded-lines.ts';
import { findLaunchers, type Launcher, type WorkerProgram } from '../confinement/launchers.ts';
import { describeEnding, killWorker } from '../process-tree.ts';
import { CHANNEL_DESCRIPTOR } from '../protocol.ts';
import type { StarterCommand, StarterMessage } from './messages.ts';
import { spawnWorker } from './spawn.ts';

/**
 * The process that starts workers and waits for their ends. It has no files open: a process that is started closes all
 * that it has inherited before it is another program, `spawn` waits for that, and where one of these files is on a disk
 * that hangs, it waits as long as the disk does. The main process did, and served nothing meanwhile, hits neither.
 */

/** What is logged of a worker's standard error in its whole life. */
const STDERR_BOUNDS = { maxLines: 20, maxLineBytes: 500 };

/** Time for the rest of what an ended worker has written to be read; a child of its own may hold the pipe open. */
const LAST_LINES_MS = 1_000;

const ordinaryWorker = fileURLToPath(new URL('../child/main.js', import.meta.url));
const [, , workerFile = ordinaryWorker] = process.argv;
/** What a worker gets to know of our environment is all that this process has got. */
const program: WorkerProgram = { workerFile, environment: process.env as Record<string, string> };
const launchers = findLaunchers(program);

/** By place; each is looked for once, when it is asked for. */
const found: Promise<Launcher | undefined>[] = [];

/** What kills each worker that has not ended. */
const kills = new Map<number, () => void>();

let isStopping = false;

process.on('message', (command: StarterCommand) => {
  if (command.kind === 'find') void find(command.place);
  else if (command.kind === 'start') void start(command);
  else if (command.kind === 'kill') kills.get(command.id)?.();
  else stop();
});
// The main process is gone, however it went: no one is left to work for.
process.on('disconnect', () => {
  for (const kill of kills.values()) kill();
  process.exit();
});
// A terminal's ^C reaches the whole process group; the main process decides when workers end.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);

function say(message: StarterMessage, channel?: Socket): void {
  // That it does not arrive means that the main process is gone, which is noticed elsewhere.
  process.send?.(message, channel, {}, () => undefined);
}

async function find(place: number): Promise<void> {
  const launcher = await launcherAt(place);
  if (launcher === undefined) return say({ kind: 'found', place });
  const { launch, ...way } = launcher;
  say({ kind: 'found', place, way });
}

/** @returns `undefined` if there is none of that place */
function launcherAt(place: number): Promise<Launcher | undefined> {
  const before = place === 0 ? Promise.resolve() : launcherAt(place - 1);
  found[place] ??= before.then(async () => (await launchers.next()).value ?? undefined);
  return found[place];
}

/** @throws Error if that way does not work any more */
async function launcherBy(name: string): Promise<Launcher> {
  for (let place = 0; ; place += 1) {
    const launcher = await launcherAt(place);
    if (launcher === undefined) throw new Error(`workers cannot be confined by ${name} any more`);
    if (launcher.name === name) return launcher;
  }
}

async function start({ id, by, memoryBytes }: StarterCommand & { kind: 'start' }): Promise<void> {
  const end = (ending: string): void => {
    kills.delete(id);
    say({ kind: 'ended', id, ending });
    if (isStopping) leaveIfDone();
  };
  let isKilled = false;
  kills.set(id, () => {
    isKilled = true;
  });
  try {
    const launcher = await launcherBy(by);
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
  leaveIfDone();
}

function leaveIfDone(): void {
  // Not `disconnect`: from within a message, it ends Node 20 with a TypeError.
  if (kills.size === 0) process.exit();
}
