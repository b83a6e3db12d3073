import { readdirSync, stat } from 'node:fs';
import { type ConnectOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { getPriority, platform, setPriority } from 'node:os';
import sharp from 'sharp';
import { sourceFormats } from '../../contract/image-formats.ts';
import { Inbox } from '../inbox.ts';
import { type Packet, PacketReader, writePacket } from '../packets.ts';
import {
  CHANNEL_DESCRIPTOR,
  formatMessage,
  MAX_DETAIL_LENGTH,
  parseCommand,
  type WorkerCommand,
  type WorkerMessage,
  type WorkerResponse,
} from '../protocol.ts';
import { hasMemoryLeft } from './memory-left.ts';
import { failureOf, render } from './render.ts';
import { Requests } from './requests.ts';

/** Receive buffer: larger than a socket's default in Linux. */
const RECEIVED_BYTES = 256 * 1024;

/** Time until a worker without a channel aborts, in milliseconds. (An abort writes to standard error.) */
const LAST_RESORT_MS = 2_000;

/** A render worker, whose crash or hang costs one job. It reads only its channel, and has no credentials. */
setUpSharp();
lowerPriority(Number(process.argv[2]));
// The type lacks `onread`, which `connect` passes on.
const socketOptions: SocketConstructorOpts & ConnectOpts = {
  fd: CHANNEL_DESCRIPTOR,
  // One buffer for all data: a buffer per 64 KiB took 3 to 6 % of an avatar's CPU (bench/RESULTS.md).
  onread: {
    buffer: Buffer.allocUnsafeSlow(RECEIVED_BYTES),
    callback: (sizeBytes, buffer) => {
      for (const packet of packets.read(buffer.subarray(0, sizeBytes))) inbox.push(packet);
      return true;
    },
  },
};
const channel = new Socket(socketOptions);
const inbox = new Inbox<Packet>();
let isIdle = true;
// No limits: the main process is trusted. It sends one command at a time, and replies.
const packets = new PacketReader({
  maxHeaderBytes: Infinity,
  maxBodyBytes: () => Infinity,
  // Sent first: an original that kills this process on arrival must not be retried elsewhere.
  onPacket: () => {
    if (isIdle) send({ kind: 'begun' });
    isIdle = false;
  },
});
channel.resume();
// Without the main process, nothing limits a render. `exit` would wait for libvips' threads.
channel.on('error', () => undefined);
channel.on('close', () => {
  process.kill(process.pid, 'SIGKILL');
  // The first process of a PID namespace ignores its own signals (pid_namespaces(7)), but usually ends with its parent.
  setTimeout(() => process.abort(), LAST_RESORT_MS);
});
// A terminal signals the process group, but the main process decides when a worker ends.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);
process.on('SIGHUP', () => undefined);

// Starts libuv's threads before the first job: libuv aborts the process if it cannot start them (`uv_queue_work`).
stat('/', () => void work());

async function work(): Promise<never> {
  send({ kind: 'ready' });
  for (;;) {
    const response = await respond(await inbox.next());
    isIdle = true;
    send(response);
  }
}

async function respond(packet: Packet): Promise<WorkerResponse> {
  try {
    const command = parseCommand(packet);
    if (command.sizeBytes !== undefined) return await respondByRanges(command);
    const body = await render(command.original, command.job);
    return { kind: 'rendered', body, rssBytes: readRssBytes() };
  } catch (error) {
    return describeFailure(error);
  }
}

async function respondByRanges({
  sizeBytes,
  job,
}: WorkerCommand & { readonly sizeBytes: number }): Promise<WorkerResponse> {
  const requests = new Requests(sizeBytes, inbox, send);
  try {
    if (job !== undefined) {
      const { renderPoster } = await import('./video/render-poster.ts');
      const body = await renderPoster(requests, requests, job);
      return { kind: 'rendered', body, rssBytes: readRssBytes() };
    }
    const { inspectAv } = await import('./video/inspect-av.ts');
    const metadata = await inspectAv(requests);
    return { kind: 'inspected', metadata, rssBytes: readRssBytes() };
  } finally {
    await requests.close();
  }
}

function describeFailure(error: unknown): WorkerResponse {
  const { code, cause } = failureOf(error);
  const detail = cause instanceof Error ? String(cause.stack).slice(0, MAX_DETAIL_LENGTH) : '';
  const rssBytes = readRssBytes();
  return { kind: 'failed', code: hasMemoryLeft() ? code : 'OVERLOADED', detail, rssBytes };
}

/** Returns the resident memory in bytes, or its maximum so far if no descriptor is free to read it. */
function readRssBytes(): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    return process.resourceUsage().maxRSS * 1024;
  }
}

function send(message: WorkerMessage): void {
  writePacket(channel, formatMessage(message));
}

/**
 * Configures sharp: one thread, since the workers run in parallel; no cache, since no original is rendered twice in a
 * row and nothing may leak into another result; only the loaders of contract §3.
 */
function setUpSharp(): void {
  sharp.concurrency(1);
  sharp.cache(false);
  sharp.block({ operation: ['VipsForeignLoad'] });
  sharp.unblock({ operation: Object.values(sourceFormats).flatMap(({ loader }) => loader ?? []) });
}

/** Lowers the priority of all threads of this process; later ones inherit it. */
function lowerPriority(niceness: number): void {
  try {
    const threads = platform() === 'linux' ? readdirSync('/proc/self/task').map(Number) : [0];
    for (const thread of threads) {
      if (getPriority(thread) < niceness) setPriority(thread, niceness);
    }
  } catch {
    // A thread has just ended, or the system refuses; the confinement report has the actual priority.
  }
}
