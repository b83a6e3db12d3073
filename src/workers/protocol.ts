import type { ErrorCode } from '../contract/errors.ts';
import { tooLargeMedia } from '../formats/byte-reader.ts';
import type { AvMetadata, DecodeRequest } from '../formats/video/av-metadata.ts';
import type { RangeReader, RenderJob } from '../pipeline/ports.ts';
import { formatPacket, type Packet } from './packets.ts';

/** Messages between the main process and a render worker, sent as packets (`packets.ts`). */

/** Descriptor of the socket in a worker, after the three standard streams. */
export const CHANNEL_DESCRIPTOR = 3;

/** First descriptor for the programs that start a worker. */
export const FIRST_INPUT_DESCRIPTOR = 4;

/** Maximum header of a worker's message in bytes; the longest is a failure's. */
export const MAX_MESSAGE_HEADER_BYTES = 16 * 1024;

/** Maximum length of a failure's detail in UTF-16 units; JSON writes at most 6 bytes for each. */
export const MAX_DETAIL_LENGTH = 2_000;

export type WorkerJob =
  /** Renders an original that is sent complete, or read by ranges. */
  | { readonly job: RenderJob; readonly original: Uint8Array | RangeReader }
  /** Reads the metadata of a video or audio file. */
  | { readonly job: undefined; readonly original: RangeReader };

export type WorkerCommand =
  | { readonly original: Uint8Array; readonly sizeBytes?: undefined; readonly job: RenderJob }
  | { readonly sizeBytes: number; readonly job: RenderJob | undefined };

/** Reply to a request: bytes in pieces, then `end` or `refused`. Only then may the worker send its next message. */
export type Reply =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'end' }
  | {
      readonly kind: 'refused';
      readonly code: FailureCode;
      readonly detail: string;
    };

/** Errors that a worker may report: `OVERLOADED` if the machine lacks a resource, `INTERNAL_ERROR` for a bug. */
export const FAILURE_CODES = [
  'UNPROCESSABLE_MEDIA',
  'MEDIA_TOO_LARGE',
  'OVERLOADED',
  'INTERNAL_ERROR',
] as const satisfies readonly ErrorCode[];

export type FailureCode = (typeof FAILURE_CODES)[number];

/** Message of a worker: `ready` once; then for each job `begun`, any number of requests, and one response. */
export type WorkerMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'begun' }
  | WorkerRequest
  | WorkerResponse;

/** One request at a time: for the bytes `[start, end)` of the original, or for a frame. */
export type WorkerRequest =
  | { readonly kind: 'read'; readonly start: number; readonly end: number }
  | { readonly kind: 'decode'; readonly request: DecodeRequest };

/** `rssBytes`: resident memory after the job. */
export type WorkerResponse =
  | { readonly kind: 'rendered'; readonly body: Uint8Array; readonly rssBytes: number }
  | { readonly kind: 'inspected'; readonly metadata: AvMetadata; readonly rssBytes: number }
  | {
      readonly kind: 'failed';
      readonly code: FailureCode;
      /** For the log, at most `MAX_DETAIL_LENGTH` long. */
      readonly detail: string;
      readonly rssBytes: number;
    };

export function formatCommand({ original, job }: WorkerJob): Uint8Array[] {
  if (original instanceof Uint8Array) return formatPacket({ job }, original);
  return formatPacket({ job, sizeBytes: original.sizeBytes });
}

/** Parses a job without validation. @throws MediaError `MEDIA_TOO_LARGE` if memory for the original was missing */
export function parseCommand({ header, body }: Packet): WorkerCommand {
  if (body === undefined) throw tooLargeMedia('Out of memory for the original.');
  return { ...(header as WorkerCommand), original: body } as WorkerCommand;
}

export function formatReply(reply: Reply): Uint8Array[] {
  if (reply.kind !== 'bytes') return formatPacket(reply);
  return formatPacket({ kind: reply.kind }, reply.bytes);
}

export function formatMessage(message: WorkerMessage): Uint8Array[] {
  if (message.kind === 'rendered') {
    const { body, ...header } = message;
    return formatPacket(header, body);
  }
  if (message.kind !== 'decode') return formatPacket(message);
  const { stream, ...request } = message.request;
  return formatPacket({ kind: message.kind, request }, stream);
}
