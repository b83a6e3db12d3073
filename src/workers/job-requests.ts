import type { Socket } from 'node:net';
import { formatCauses, MediaError } from '../contract/errors.ts';
import type { DecodeRequest } from '../formats/video/av-metadata.ts';
import { unlessAborted } from '../pipeline/abort.ts';
import type { RangeReader } from '../pipeline/ports.ts';
import { ProtocolError, writePacket } from './packets.ts';
import { MAX_STREAM_BYTES } from './parse-message.ts';
import {
  FAILURE_CODES,
  type FailureCode,
  formatReply,
  MAX_DETAIL_LENGTH,
  type Reply,
  type WorkerJob,
  type WorkerMessage,
  type WorkerRequest,
  type WorkerResponse,
} from './protocol.ts';

/** Decodes single frames, each in a process of its own. */
export interface FrameSource {
  /**
   * Yields the pieces of a Y4M file, at most `maxFrameBytes`.
   *
   * @throws MediaError `UNPROCESSABLE_MEDIA` if the frame is damaged or ended the decoder, `OVERLOADED` if no process
   *   could be started; or `signal.reason`
   */
  decode(request: DecodeRequest, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/** Maximum of frames of a job: four candidates, each with a frame of its alpha. */
const MAX_DECODES = 8;

export interface JobProgress {
  hasBegun: boolean;
  decodes: number;
  /** First failure that is not the original's, such as the storage's: the job ends with it. */
  failure: { readonly error: unknown } | undefined;
}

/** Returns the maximum length of a message's body during a job. */
export function maxBodyBytesOf({ job, original }: WorkerJob): number {
  const streamBytes = original instanceof Uint8Array ? 0 : MAX_STREAM_BYTES;
  return job === undefined ? 0 : Math.max(job.maxResultBytes, streamBytes);
}

/** Whether the job allows a message as its response. */
export function isResponseTo(
  { job }: WorkerJob,
  message: WorkerMessage,
): message is WorkerResponse {
  if (message.kind === 'rendered') return message.body.length <= (job?.maxResultBytes ?? -1);
  return message.kind === 'failed' || (message.kind === 'inspected' && job === undefined);
}

/**
 * Opens the requested range or frame.
 *
 * @throws ProtocolError if the job does not allow the message; with a whole original, it allows no request
 */
export function openRequest(
  { job, original }: WorkerJob,
  message: WorkerMessage,
  progress: JobProgress,
  frames: FrameSource,
): (signal: AbortSignal) => AsyncIterable<Uint8Array> {
  const request = toRequest(message);
  if (request === undefined || original instanceof Uint8Array) {
    throw new ProtocolError(`"${message.kind}" out of turn`);
  }
  if (request.kind === 'read') {
    if (request.end > original.sizeBytes) throw new ProtocolError('a range beyond the original');
    return (signal) => readRange(original, request.start, request.end, signal);
  }
  progress.decodes += 1;
  if (job === undefined) throw new ProtocolError('a frame out of turn');
  if (progress.decodes > MAX_DECODES) throw new ProtocolError('too many frames');
  return (signal) => frames.decode(request.request, signal);
}

function toRequest(message: WorkerMessage): WorkerRequest | undefined {
  return message.kind === 'read' || message.kind === 'decode' ? message : undefined;
}

async function* readRange(
  original: RangeReader,
  start: number,
  end: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  yield await original.read(start, end, signal);
}

/**
 * Replies to a request; a failure that is not the original's becomes the job's own.
 *
 * @throws `signal.reason`, the end of the worker
 */
export async function reply(
  channel: Socket,
  open: (signal: AbortSignal) => AsyncIterable<Uint8Array>,
  progress: JobProgress,
  signal: AbortSignal,
): Promise<void> {
  let last: Reply = { kind: 'end' };
  try {
    if (progress.failure !== undefined) throw progress.failure.error;
    for await (const bytes of open(signal)) {
      signal.throwIfAborted();
      const hasRoom = writePacket(channel, formatReply({ kind: 'bytes', bytes }));
      // A frame may have 200 MB. A channel that breaks is not a failure of the job: the signal aborts with the worker's end.
      if (hasRoom) continue;
      await unlessAborted(new Promise((resolve) => channel.once('drain', resolve)), signal);
    }
  } catch (error) {
    signal.throwIfAborted();
    const code = toFailureCode(error);
    if (code === 'INTERNAL_ERROR') progress.failure ??= { error };
    last = { kind: 'refused', code, detail: describe(error) };
  }
  signal.throwIfAborted();
  // Without waiting for `drain`: the worker may send its next message at once.
  writePacket(channel, formatReply(last));
}

/** Returns the code that a worker receives; it may continue without this range or frame. */
function toFailureCode(error: unknown): FailureCode {
  const code = error instanceof MediaError && FAILURE_CODES.find((each) => each === error.code);
  return code && code !== 'OVERLOADED' ? code : 'INTERNAL_ERROR';
}

/** Describes a refusal for the log, which the worker returns; a failure of the job is logged as it is. */
function describe(error: unknown): string {
  const isRefusal = error instanceof MediaError && error.code === 'UNPROCESSABLE_MEDIA';
  return isRefusal ? formatCauses(error.cause).slice(2, MAX_DETAIL_LENGTH) : 'Request failed.';
}
