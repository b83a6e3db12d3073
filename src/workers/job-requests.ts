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
   * @throws MediaError `UNPROCESSABLE_MEDIA` for a bad frame, `OVERLOADED` if no process could start; or
   *   `signal.reason`
   */
  decode(request: DecodeRequest, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/** Maximum frames of a job: four candidates, each with an alpha frame. */
const MAX_DECODES = 8;

export interface JobProgress {
  hasBegun: boolean;
  decodes: number;
  /** First failure for which the original is not responsible, such as the storage's. The job fails with it. */
  failure: { readonly error: unknown } | undefined;
}

/** Returns the maximum length of a message's body during a job. */
export function maxBodyBytesOf({ job, original }: WorkerJob): number {
  const streamBytes = original instanceof Uint8Array ? 0 : MAX_STREAM_BYTES;
  return job === undefined ? 0 : Math.max(job.maxResultBytes, streamBytes);
}

/** Whether a message is a valid response to the job. */
export function isResponseTo(
  { job }: WorkerJob,
  message: WorkerMessage,
): message is WorkerResponse {
  if (message.kind === 'rendered') return message.body.length <= (job?.maxResultBytes ?? -1);
  return message.kind === 'failed' || (message.kind === 'inspected' && job === undefined);
}

/**
 * Opens the requested range or frame. @throws ProtocolError if the job does not allow it: a complete original needs
 * none
 */
export function openRequest(
  { job, original }: WorkerJob,
  message: WorkerMessage,
  progress: JobProgress,
  frames: FrameSource,
): (signal: AbortSignal) => AsyncIterable<Uint8Array> {
  const request = toRequest(message);
  if (request === undefined || original instanceof Uint8Array) {
    throw new ProtocolError(`unexpected "${message.kind}"`);
  }
  if (request.kind === 'read') {
    if (request.end > original.sizeBytes) throw new ProtocolError('a range beyond the original');
    return (signal) => readRange(original, request.start, request.end, signal);
  }
  progress.decodes += 1;
  if (job === undefined) throw new ProtocolError('an unexpected request for a frame');
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

/** Replies to a request. Errors that are not the original's fail the job. @throws `signal.reason`, the worker's end */
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
      // A frame may have 200 MB. A broken channel is not a failure of the job: the signal aborts when the worker ends.
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
  // Does not wait for `drain`, since the worker may send its next message at once.
  writePacket(channel, formatReply(last));
}

/** Returns the error code for the worker, which may continue without this range or frame. */
function toFailureCode(error: unknown): FailureCode {
  const code = error instanceof MediaError && FAILURE_CODES.find((each) => each === error.code);
  return code && code !== 'OVERLOADED' ? code : 'INTERNAL_ERROR';
}

/** Returns the detail that the worker sends back for the log; the main process logs a failure of the job itself. */
function describe(error: unknown): string {
  const isRefusal = error instanceof MediaError && error.code === 'UNPROCESSABLE_MEDIA';
  return isRefusal ? formatCauses(error.cause).slice(2, MAX_DETAIL_LENGTH) : 'Request failed.';
}
