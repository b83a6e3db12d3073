import { type ErrorCode, MediaError } from '../contract/errors.ts';
import type { RenderJob } from '../pipeline/render/render-job.ts';
import { type Frame, formatFrame, ProtocolError } from './frames.ts';

/** Messages between the main process and a render worker, as frames of a socket (`frames.ts`). */

/** File descriptor of the socket in a worker, after the three standard streams. */
export const CHANNEL_DESCRIPTOR = 3;

/** First descriptor for the programs that start a worker. */
export const FIRST_INPUT_DESCRIPTOR = 4;

/** Longest header that a worker may send: a message with a truncated detail of a failure. */
export const MAX_MESSAGE_HEADER_BYTES = 16 * 1024;

/** Longest detail of a failure, in UTF-16 units; JSON makes at most 6 bytes of each. */
export const MAX_DETAIL_LENGTH = 2_000;

/**
 * The first frame to a worker, which sends nothing before it: the process that has started the worker also holds the
 * other end of the channel until it has passed this on, and messages that it read meanwhile would be lost.
 */
export const GREETING = formatFrame({});

/** One job for a worker, which has one at a time. */
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

export type FailureCode = (typeof FAILURE_CODES)[number];

/**
 * Message of a worker: after the greeting, once, that it is ready; then for each job that it has begun, as soon as the
 * first bytes arrive, and one response.
 */
export type WorkerMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'begun' }
  | WorkerResponse;

/** Result of a job; `rssBytes` is the worker's resident memory after it. */
export type WorkerResponse =
  | { readonly kind: 'rendered'; readonly body: Uint8Array; readonly rssBytes: number }
  | {
      readonly kind: 'failed';
      readonly code: FailureCode;
      /** For the log; at most `MAX_DETAIL_LENGTH` long. */
      readonly detail: string;
      readonly rssBytes: number;
    };

/** Formats a job for a worker. */
export function formatCommand({ original, job }: RenderCommand): Uint8Array[] {
  return formatFrame({ job }, original);
}

/**
 * Parses a job in a worker, without checks, since the main process is trusted.
 *
 * @throws MediaError `MEDIA_TOO_LARGE` if memory for the original was missing
 */
export function parseCommand({ header, body }: Frame): RenderCommand {
  if (body === undefined) {
    const cause = new Error('There is no memory for an original of that size.');
    throw new MediaError('MEDIA_TOO_LARGE', { cause });
  }
  return { original: body, job: (header as { readonly job: RenderJob }).job };
}

/** Formats a message for the main process. */
export function formatMessage(message: WorkerMessage): Uint8Array[] {
  if (message.kind !== 'rendered') return formatFrame(message);
  const { body, ...header } = message;
  return formatFrame(header, body);
}

/**
 * Parses a message in the main process, and trusts nothing in it: its sender decodes uploads of strangers, and may be
 * compromised.
 *
 * @throws ProtocolError unless it is a `WorkerMessage` that fits into memory
 */
export function parseMessage({ header, body }: Frame): WorkerMessage {
  if (body === undefined) throw new ProtocolError('a body that does not fit into memory');
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
