import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { describeEnding, killGroup, killWorker, MAX_POLLS, NO_END } from '../process-tree.ts';
import { CHANNEL_DESCRIPTOR, FIRST_INPUT_DESCRIPTOR } from '../protocol.ts';

/**
 * The fork server starts workers and decoders, and waits for their ends. `spawn` blocks until the child has closed all
 * inherited files, which takes long for a file on a hanging disk: this process opens none. And the main loop would
 * block for the `spawn` of each ffmpeg, one per key frame.
 *
 * Not covered: standard error that is a file on such a disk, and the start of this process while a disk hangs.
 */

/** Commands of the main process over Node's IPC, which is safe here: neither side reads uploads. */
export type ForkServerCommand =
  | {
      readonly kind: 'start';
      readonly id: number;
      readonly command: string;
      readonly args: readonly string[];
      /** Contents of the descriptors after the channel, each read to its end. */
      readonly inputs: readonly Uint8Array[];
      readonly isIsolated: boolean;
      readonly isGroup: boolean;
    }
  | { readonly kind: 'kill'; readonly id: number };

export type ForkServerMessage =
  /** Sent with the channel to the process. */
  | { readonly kind: 'started'; readonly id: number; readonly processId: number }
  | { readonly kind: 'line'; readonly id: number; readonly line: string }
  | { readonly kind: 'ended'; readonly id: number; readonly ending: string };

/** Maximum logged lines of a process's standard error. */
const MAX_LINES = 20;

/** Maximum bytes of such a line; the rest becomes another line. */
const MAX_LINE_BYTES = 500;

/** Time to read the last output of an ended worker, in milliseconds: its child may keep the pipe open. */
const LAST_LINES_MS = 1_000;

/** Time after which a killed worker counts as ended, in milliseconds; less than `KILL_TIMEOUT_MS`. */
const END_TIMEOUT_MS = 5_000;

const ENVIRONMENT = {
  UV_THREADPOOL_SIZE: '2',
  // glibc's 8 arenas per core fragment memory. By default, glibc also returns every image's buffers to the system: with
  // 64 MiB kept, and separate mappings from 32 MiB (its maximum), photographs took 44.7 instead of 47.2 ms of CPU,
  // avatars 9.2 instead of 9.5 (medians of four runs over 60 originals), without more memory.
  MALLOC_ARENA_MAX: '1',
  MALLOC_TRIM_THRESHOLD_: String(64 * 1024 ** 2),
  MALLOC_MMAP_THRESHOLD_: String(32 * 1024 ** 2),
  // libvips creates its threads when it starts: a thread that cannot be created during a job would crash the worker. No
  // pipeline uses more than 4; with fewer than it needs, it hangs.
  VIPS_MAX_THREADS: '8',
  // libvips' warnings are not errors (contract §3).
  VIPS_WARNING: '0',
  // Keeps decoded pixels in memory, which is limited; by default, libvips writes those beyond 100 MB to a file.
  VIPS_DISC_THRESHOLD: '1000g',
  // The seccomp filter denies io_uring, which would enlarge the kernel's attack surface.
  UV_USE_IO_URING: '0',
};

/** Functions that kill the live workers; `polls` as of `killWorker`. */
const kills = new Map<number, (polls: number) => void>();

process.on('message', (command: ForkServerCommand) => {
  if (command.kind === 'start') start(command);
  else kills.get(command.id)?.(MAX_POLLS);
});
// The main process has stopped the workers or ended. (`disconnect` does not fire while a channel is in transfer.)
process.stdin.on('close', exit).on('error', exit).resume();
// A terminal signals the process group, but the main process decides when workers end.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);
process.on('SIGHUP', () => undefined);

function exit(): void {
  for (const kill of kills.values()) kill(0);
  process.exit();
}

function send(message: ForkServerMessage, channel?: Socket): void {
  // Delivery fails only if the main process has ended, which standard input reports.
  process.send?.(message, channel, {}, () => undefined);
}

/**
 * Stops reading, so that the main process receives all bytes: Node reads a socket that it sends until the other side
 * has confirmed it, and drops the bytes (Node 20, 22, 24 and 26). Only the internal handle can stop.
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
    if (child.pid === undefined) end(error.message);
  });
  const { pid } = child;
  if (pid === undefined) return;
  const kill = (polls: number): void => {
    if (isGroup) killGroup(pid);
    else killWorker(child, isIsolated, polls);
    setTimeout(() => end(NO_END), END_TIMEOUT_MS).unref();
  };
  kills.set(id, kill);
  // Without a free descriptor, `spawn` returns no pipe.
  const socketAt = (descriptor: number) => child.stdio?.[descriptor] as Socket | undefined;
  for (const [index, bytes] of inputs.entries()) {
    // An error here means that the reading program has ended, and the worker with it.
    socketAt(FIRST_INPUT_DESCRIPTOR + index)
      ?.on('error', () => undefined)
      .end(bytes);
  }
  const channel = socketAt(CHANNEL_DESCRIPTOR);
  if (channel === undefined) kill(MAX_POLLS);
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

/** Reads lines up to the maximum, then closes the stream, so that further output costs nothing. */
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
