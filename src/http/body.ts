/** Bodies of responses: errors as JSON, bodies in memory, and bodies that are sent at the pace of their receivers. */

import { type IncomingMessage, ServerResponse, validateHeaderValue } from 'node:http';
import { Readable } from 'node:stream';
import { MediaError, type RequestFault, type Share } from '../contract/errors.ts';
import { ALLOWED_METHODS, COMMON_HEADERS, type Content, type Head, prepareHead } from './head.ts';

/** Failure as a client sees it; a `MediaError` is one. */
export interface Failure {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  /** Only for `INVALID_FORM_BODY`. */
  readonly faults?: readonly RequestFault[];
  /** With fractions for `RATE_LIMITED`, whose body has them. */
  readonly retryAfterSeconds?: number | undefined;
  /** Only for `RATE_LIMITED`. */
  readonly share?: Share | undefined;
  /** Only for `METHOD_NOT_ALLOWED`; `undefined`: the methods of media. */
  readonly allowedMethods?: string | undefined;
  /** Only for `UNAVAILABLE`. */
  readonly blockedBy?: string | undefined;
}

/**
 * Formats the response to a request that has failed, for every listener (contract §5).
 *
 * @param headers headers of all responses of the listener
 */
export function formatFailure(failure: Failure, headers: Readonly<Record<string, string>>) {
  const { status, code, message, faults = [], retryAfterSeconds, share } = failure;
  const { allowedMethods, blockedBy } = failure;
  const error = {
    code,
    message,
    ...(code === 'INVALID_FORM_BODY' && { errors: faults }),
    ...(code === 'RATE_LIMITED' && { retry_after: retryAfterSeconds ?? 1 }),
  };
  const body = Buffer.from(JSON.stringify(error));
  return {
    status,
    body,
    headers: {
      ...headers,
      ...(code === 'METHOD_NOT_ALLOWED' && { allow: allowedMethods ?? ALLOWED_METHODS }),
      ...(retryAfterSeconds !== undefined && {
        'retry-after': String(Math.ceil(retryAfterSeconds)),
      }),
      ...(share && formatShare(share)),
      ...(blockedBy !== undefined && { link: `<${blockedBy}>; rel="blocked-by"` }),
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(body.length),
    },
  };
}

/** Formats a client's share as the headers of contract §11, which pages of other sites may read as well. */
function formatShare({ requests, remaining, resetAtMs }: Share): Record<string, string> {
  const share = {
    'X-RateLimit-Limit': String(requests),
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': String(Math.ceil(resetAtMs / 1000)),
  };
  const exposed = [COMMON_HEADERS['access-control-expose-headers'], ...Object.keys(share)];
  return { ...share, 'access-control-expose-headers': exposed.join(', ') };
}

/**
 * Creates the refusal of a method; on an unknown path, the path is the fault.
 *
 * @param allowedMethods methods of the path; `undefined`: the path is unknown
 */
export function refuseMethod(allowedMethods: string | undefined): MediaError {
  if (allowedMethods === undefined) return new MediaError('NOT_FOUND');
  return new MediaError('METHOD_NOT_ALLOWED', { allowedMethods });
}

/** Body in memory that is sent again and again. */
export interface PreparedBody {
  readonly bytes: Buffer;
  readonly head: Head;
  /** Status line and fields of a 200, as they are sent. */
  readonly wholeText: string;
}

/** @throws TypeError if Node would not write a field */
export function prepareBody(bytes: Buffer, content: Omit<Content, 'sizeBytes'>): PreparedBody {
  const head = prepareHead({ ...content, sizeBytes: bytes.length });
  return { bytes, head, wholeText: `HTTP/1.1 200 OK\r\n${formatFields(head.wholeFields)}` };
}

/** Formats names and values in turn, as they are sent. */
export function formatFields(fields: readonly string[]): string {
  const lines: string[] = [];
  for (let index = 0; index < fields.length; index += 2) {
    const [name = '', value = ''] = fields.slice(index, index + 2);
    validateHeaderValue(name, value);
    lines.push(`${name}: ${value}\r\n`);
  }
  return lines.join('');
}

/** The head of Node's response as text, which is its own until a head is written. */
interface TextHead {
  _header: string | null;
}

/**
 * Whether a response can be sent with a head that is text already, by `sendText`. Node has no public way to do that, and
 * to format and check the same fields again takes a seventh of a hit. If Node's inner part changes, or somebody wraps
 * `writeHead` (as light-my-request does), the fields go that way.
 */
export function takesText(request: IncomingMessage, response: ServerResponse): boolean {
  const { method, httpVersion, headers } = request;
  const isPlain = method === 'GET' && httpVersion === '1.1' && headers.expect === undefined;
  const isNodes = response.writeHead === ServerResponse.prototype.writeHead;
  const { _header } = response as ServerResponse & TextHead;
  return isPlain && isNodes && response.shouldKeepAlive && _header === null;
}

/** Sends a 200 over a connection that is kept. @param head its status line and fields, complete but for the last line */
export function sendText(response: ServerResponse, head: string, body: Buffer): void {
  (response as ServerResponse & TextHead)._header = `${head}\r\n`;
  response.end(body);
}

/** Whether a body counts how many bytes its receiver has asked for. */
export function isMetered(body: unknown): body is { readonly passedBytes: number } {
  return typeof body === 'object' && body !== null && 'passedBytes' in body;
}

/** Largest body that is sent in one piece: most images. In pieces of 64 KiB a hit of 660 kB took 0.40 ms, not 0.26. */
export const PIECE_BYTES = 262_144;

/**
 * Body in memory that is sent at its receiver's pace. As a whole it would be copied: encrypted at once, for each
 * receiver, and kept until the slowest receiver has taken it.
 */
export class BufferPieces extends Readable {
  readonly #bytes: Buffer;
  /** Bytes that the receiver has asked for. */
  passedBytes = 0;

  constructor(bytes: Buffer) {
    super({ highWaterMark: PIECE_BYTES });
    this.#bytes = bytes;
  }

  override _read(): void {
    const piece = this.#bytes.subarray(this.passedBytes, this.passedBytes + PIECE_BYTES);
    this.passedBytes += piece.length;
    this.push(piece.length === 0 ? null : piece);
  }
}
