import { Socket } from 'node:net';
import { MediaError } from '../../contract/errors.ts';
import { type Frame, FrameReader, writeFrame } from '../frames.ts';
import {
  CHANNEL_DESCRIPTOR,
  FAILURE_CODES,
  type FailureCode,
  formatMessage,
  MAX_DETAIL_LENGTH,
  parseCommand,
  type WorkerMessage,
  type WorkerResponse,
} from '../protocol.ts';
import { render } from './render.ts';
import { setUpSharp } from './sharp-setup.ts';

/**
 * How an allocation that failed is told: "out of memory" (libvips), "Insufficient memory" (libjpeg),
 * "Memory allocation error" (libheif), "Array buffer allocation failed" (V8), "std::bad_alloc" (C++).
 */
const OUT_OF_MEMORY = /\b(memory|allocation|bad_alloc)\b/i;

/**
 * How else it is told: libwebp is merely unable to, and a thread finds no room for its stack. Both were
 * met by running every format and encoder into small bounds; neither is a bug of ours.
 */
const UNABLE = /\bwebp(save|2vips)\w*: |Error creating thread/;

/**
 * A render worker: a process of its own, so that a decoder that hangs, crashes or eats memory takes
 * one job with it and nothing else. It reads nothing but its channel and holds no credentials.
 */
setUpSharp();
const channel = new Socket({ fd: CHANNEL_DESCRIPTOR });
let isGreeted = false;
// Of the main process, which is trusted: it sends one command at a time, as large as it likes.
const frames = new FrameReader({
  maxHeaderBytes: Infinity,
  maxBodyBytes: () => Infinity,
  // An original that is more than this process survives is not to be tried on others.
  onFrame: () => {
    if (isGreeted) send({ kind: 'begun' });
  },
});
channel.on('data', (chunk) => {
  for (const frame of frames.read(chunk)) {
    if (!isGreeted) {
      isGreeted = true;
      send({ kind: 'ready' });
    } else
      respond(frame).then(send, (error: unknown) => {
        throw error;
      });
  }
});
// The main process is gone, however it went: no one is left to work for, and no one bounds a render any
// more. `exit` would wait for libvips' threads, to the end of it.
channel.on('error', () => undefined);
channel.on('close', () => process.kill(process.pid, 'SIGKILL'));
// A terminal's ^C reaches the whole process group; the main process decides when a worker ends.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);

async function respond(frame: Frame): Promise<WorkerResponse> {
  try {
    const { original, job } = parseCommand(frame);
    const body = await render(original, job);
    return { kind: 'rendered', body, rssBytes: process.memoryUsage.rss() };
  } catch (error) {
    const { code, cause } = failureOf(error);
    const detail = cause instanceof Error ? String(cause.stack).slice(0, MAX_DETAIL_LENGTH) : '';
    return { kind: 'failed', code, detail, rssBytes: process.memoryUsage.rss() };
  }
}

/**
 * What a worker may say of an error. An allocation that failed is the original's fault, wherever
 * it was noticed: libvips, a decoder, sharp or V8, which all have a bound here.
 */
function failureOf(error: unknown): { readonly code: FailureCode; readonly cause: unknown } {
  const cause = error instanceof MediaError ? (error.cause ?? error) : error;
  const code = error instanceof MediaError && FAILURE_CODES.find((known) => known === error.code);
  if (OUT_OF_MEMORY.test(String(cause))) return { code: 'MEDIA_TOO_LARGE', cause };
  if (code) return { code, cause };
  return { code: UNABLE.test(String(cause)) ? 'UNPROCESSABLE_MEDIA' : 'INTERNAL_ERROR', cause };
}

function send(message: WorkerMessage): void {
  writeFrame(channel, formatMessage(message));
}
