import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { describeEnding, killGroup, killWorker, MAX_LOOKS, NO_END } from '../process-tree.ts';
import { CHANNEL_DESCRIPTOR, FIRST_INPUT_DESCRIPTOR } from '../protocol.ts';

/**
 * The fork server: starts workers and decoders, and waits for their ends. It has two reasons. A started process first
 * closes all inherited files, `spawn` waits for this, and blocks as long as one of them is on a hanging disk; this
 * process opens no files, so that hits are served and workers start while a disk hangs. And each key frame starts an
 * ffmpeg, whose `spawn` would block the main loop.
 *
 * Not covered: standard error that is a file on such a disk; and the start of this process itself, if it was killed
 * while a disk hangs.
 */

/** Commands of the main process, over Node's IPC: neither side reads uploads of strangers. */
export type ForkServerCommand =
  | {
      readonly kind: 'start';
      readonly id: number;
      readonly command: string;
      readonly args: readonly string[];
      /** Contents for the descriptors after the channel's, each to its end. */
      readonly inputs: readonly Uint8Array[];
      readonly isIsolated: boolean;
      readonly isGroup: boolean;
    }
  | { readonly kind: 'kill'; readonly id: number };

/** Messages about a process. */
export type ForkServerMessage =
  /** Carries the channel to the process, once that has been spawned. */
  | { readonly kind: 'started'; readonly id: number; readonly processId: number }
  /** A line of the process's standard error. */
  | { readonly kind: 'line'; readonly id: number; readonly line: string }
  /** Sent once, as the last; `ending` as in `StartEvents`. */
  | { readonly kind: 'ended'; readonly id: number; readonly ending: string };

/** Maximum lines of a process's standard error that are logged, over its whole life. */
const MAX_LINES = 20;

/** Maximum length of such a line in bytes; the rest counts as another line. */
const MAX_LINE_BYTES = 500;

/** Time to read the rest of an ended worker's output, in milliseconds; its child may hold the pipe open. */
const LAST_LINES_MS = 1_000;

/**
 * Time for a killed worker to end, in milliseconds; after it, the worker counts as ended. Less than the main process
 * allows for this (`KILL_TIMEOUT_MS`).
 */
const END_TIMEOUT_MS = 5_000;

/** Environment of a worker, in addition to that of this process. */
const ENVIRONMENT = {
  // One render at a time needs few threads.
  UV_THREADPOOL_SIZE: '2',
  // glibc's 8 arenas per core only fragment memory. By default, glibc returns the buffers of every image to the system
  // and has the next one's pages mapped anew: with up to 64 MiB kept at the heap's end, and separate mappings only from
  // 32 MiB (glibc's maximum), photographs took 44.7 ms of CPU instead of 47.2, avatars 9.2 instead of 9.5 (medians of
  // four runs over 60 originals), and no more memory.
  MALLOC_ARENA_MAX: '1',
  MALLOC_TRIM_THRESHOLD_: String(64 * 1024 ** 2),
  MALLOC_MMAP_THRESHOLD_: String(32 * 1024 ** 2),
  // libvips creates its threads at its start and keeps them: one that cannot be created in mid-job crashes the worker, and
  // the original would be at fault. The pipelines of all formats use 4 at most; with fewer than it needs, one hangs.
  VIPS_MAX_THREADS: '8',
  // libvips' warnings are not errors (contract §3).
  VIPS_WARNING: '0',
  // Decoded pixels stay in memory, which is bounded: by default, those beyond 100 MB go to a file.
  VIPS_DISC_THRESHOLD: '1000g',
  // The filter of system calls would refuse it, and it would be one more way into the kernel.
  UV_USE_IO_URING: '0',
};

/** Functions that kill each worker that has neither ended nor been given up; `looks` as of `killWorker`. */
const kills = new Map<number, (looks: number) => void>();

process.on('message', (command: ForkServerCommand) => {
  if (command.kind === 'start') start(command);
  else kills.get(command.id)?.(MAX_LOOKS);
});
// The main process has stopped the workers, or is gone, however it ended. `disconnect` reports this too, but not while
// a channel is in transfer to the main process.
process.stdin.on('close', exit).on('error', exit).resume();
// A terminal's ^C, or its end, reaches the whole process group; the main process decides when workers end.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);
process.on('SIGHUP', () => undefined);

function exit(): void {
  for (const kill of kills.values()) kill(0);
  process.exit();
}

function send(message: ForkServerMessage, channel?: Socket): void {
  // A failed delivery means that the main process is gone, which is noticed elsewhere.
  process.send?.(message, channel, {}, () => undefined);
}

/**
 * Leaves what arrives in the kernel, for the main process: Node reads a socket that it sends until the other side has
 * confirmed it, and drops these bytes (tried with Node 20, 22, 24 and 26). Only the handle, which is internal, can stop.
 */
function stopReading(channel: Socket): void {
  (channel as Socket & { readonly _handle?: { readStop(): void } })._handle?.readStop();
}

function start({
  id,
  command,
  args,
  inputs,
  isIsolated,
  isGroup,
}: ForkServerCommand & { kind: 'start' }): void {
  const end = (ending: string): void => {
    if (kills.delete(id)) send({ kind: 'ended', id, ending });
  };
  kills.set(id, () => undefined);
  let child: ChildProcess;
  try {
    child = spawn(command, args, {
      env: { ...process.env, ...ENVIRONMENT },
      detached: isGroup,
      stdio: ['ignore', 'ignore', 'pipe', 'pipe', ...inputs.map(() => 'pipe' as const)],
    });
  } catch (error) {
    return void end(String(error)); // `spawn` throws some failures (ENOMEM), and emits others as events (EAGAIN)
  }
  child.on('error', (error) => {
    // A process that could not be spawned never exits.
    if (child.pid === undefined) end(error.message);
  });
  const { pid } = child;
  if (pid === undefined) return;
  const kill = (looks: number): void => {
    if (isGroup) killGroup(pid);
    else killWorker(child, isIsolated, looks);
    setTimeout(() => end(NO_END), END_TIMEOUT_MS).unref();
  };
  kills.set(id, kill);
  // A pipe of `spawn` is a socket, and is missing if no descriptor was left.
  const socketAt = (descriptor: number) => child.stdio?.[descriptor] as Socket | undefined;
  for (const [index, bytes] of inputs.entries()) {
    // An early end of the programs that read them is reported as that of the worker.
    socketAt(FIRST_INPUT_DESCRIPTOR + index)
      ?.on('error', () => undefined)
      .end(bytes);
  }
  const channel = socketAt(CHANNEL_DESCRIPTOR);
  if (channel === undefined) kill(MAX_LOOKS);
  else {
    stopReading(channel);
    send({ kind: 'started', id, processId: pid }, channel);
  }
  const { stderr } = child;
  if (stderr) readLines(stderr, (line) => send({ kind: 'line', id, line }));
  child.once('exit', (code, signal) => {
    const ending = describeEnding(code, signal);
    if (isGroup) killGroup(pid);
    if (stderr === null || stderr.closed) return end(ending);
    stderr.once('close', () => end(ending));
    setTimeout(() => stderr.destroy(), LAST_LINES_MS).unref();
  });
}

/**
 * Reads a stream line by line up to the last one that is logged, and then closes it: a process that continues to write
 * gets an error and costs us nothing.
 */
function readLines(stream: Readable, onLine: (line: string) => void): void {
  let rest = Buffer.alloc(0);
  let lines = 0;
  const pass = (line: Buffer): void => {
    const text = line.toString().trim();
    if (text === '' || lines === MAX_LINES) return;
    lines += 1;
    onLine(text);
    if (lines === MAX_LINES) stream.destroy();
  };
  stream.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (lines < MAX_LINES) {
      const end = rest.subarray(0, MAX_LINE_BYTES).indexOf('\n');
      if (end < 0 && rest.length < MAX_LINE_BYTES) return;
      const cut = end < 0 ? MAX_LINE_BYTES : end + 1;
      pass(rest.subarray(0, cut));
      rest = rest.subarray(cut);
    }
  });
  stream.on('end', () => pass(rest));
  stream.on('error', () => undefined);
}
