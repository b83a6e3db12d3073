import type { ErrorCode } from '../contract/errors.ts';
import type { RenderJob } from '../pipeline/render/render-job.ts';
import { type Frame, formatFrame, ProtocolError } from './frames.ts';

/** What the main process and a render worker say to each other, as frames of a socket (`frames.ts`). */

/** File descriptor of the socket in a worker; 0 to 2 are the usual ones. */
export const CHANNEL_DESCRIPTOR = 3;

/** The first of those that only the programs read by which a worker is started. */
export const FIRST_INPUT_DESCRIPTOR = 4;

/** Longest header that a worker may send: a message and the cut-off detail of a failure. */
export const MAX_MESSAGE_HEADER_BYTES = 16 * 1024;

/** How much of a failure's detail a worker sends, in UTF-16 units; JSON makes 6 bytes of each at most. */
export const MAX_DETAIL_LENGTH = 2_000;

/**
 * The first frame that a worker receives; before it, it says nothing. The process that has started it holds the other end
 * of the channel too until it has handed it on, and what it read meanwhile would be lost.
 */
export const GREETING = formatFrame({});

/** One job, as the main process sends it to a worker; a worker has one at a time. */
export interface RenderCommand {
  readonly original: Uint8Array;
  readonly job: RenderJob;
}

/** Errors that a worker may report; `INTERNAL_ERROR` is a bug of ours. */
export const FAILURE_CODES = [
  'UNPROCESSABLE_MEDIA',
  'MEDIA_TOO_LARGE',
  'INTERNAL_ERROR',
] as const satisfies readonly ErrorCode[];

/** One of `FAILURE_CODES`. */
export type FailureCode = (typeof FAILURE_CODES)[number];

/**
 * What a worker says: once, when it has been greeted, that it is ready, then per job that it has begun, as soon as the
 * first bytes of it are there, and one response.
 */
export type WorkerMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'begun' }
  | WorkerResponse;

/** The end of a job; `rssBytes` is the worker's resident memory after it. */
export type WorkerResponse =
  | { readonly kind: 'rendered'; readonly body: Uint8Array; readonly rssBytes: number }
  | {
      readonly kind: 'failed';
      readonly code: FailureCode;
      /** For the log; at most `MAX_DETAIL_LENGTH` long. */
      readonly detail: string;
      readonly rssBytes: number;
    };

/** A job on its way to a worker. */
export function formatCommand({ original, job }: RenderCommand): Uint8Array[] {
  return formatFrame({ job }, original);
}

/**
 * A job as a worker receives it. The main process is trusted: its form is not checked.
 *
 * @throws Error if there was no memory for the original
 */
export function parseCommand({ header, body }: Frame): RenderCommand {
  if (body === undefined) throw new Error('There is no memory for an original of that size.');
  return { original: body, job: (header as { readonly job: RenderJob }).job };
}

/** A message on its way to the main process. */
export function formatMessage(message: WorkerMessage): Uint8Array[] {
  if (message.kind !== 'rendered') return formatFrame(message);
  const { body, ...header } = message;
  return formatFrame(header, body);
}

/**
 * A message as the main process receives it. Its sender decodes what strangers upload, and may be in
 * their hands: nothing of it is believed.
 *
 * @throws ProtocolError if it is none of `WorkerMessage`, or there was no memory for it
 */
export function parseMessage({ header, body }: Frame): WorkerMessage {
  if (body === undefined) throw new ProtocolError('a body that there is no memory for');
  const { kind, code, detail, rssBytes } = isRecord(header) ? header : {};
  if (kind === 'rendered' && isByteCount(rssBytes) && body.length > 0) {
    return { kind, body, rssBytes };
  }
  if (body.length === 0) {
    if (kind === 'ready' || kind === 'begun') return { kind };
    const failure = FAILURE_CODES.find((known) => known === code);
    const isFailed = kind === 'failed' && failure !== undefined && isByteCount(rssBytes);
    if (isFailed && typeof detail === 'string') {
      return { kind, code: failure, detail: detail.slice(0, MAX_DETAIL_LENGTH), rssBytes };
    }
  }
  throw new ProtocolError('no known message');
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function isByteCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
