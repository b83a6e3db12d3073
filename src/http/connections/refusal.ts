import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { type ErrorCode, MediaError, methodNotAllowed } from '../../contract/errors.ts';
import type { Meter } from '../../pipeline/meter.ts';
import { type Failure, formatFailure, refuseMethod } from '../failure.ts';
import { ALLOWED_METHODS, COMMON_HEADERS } from '../head.ts';

/** Response of the listener to a message that is invalid or too large, or exceeds the number of requests. */
export interface Refusal extends Failure {
  readonly code: ErrorCode;
}

/** Creates the refusal of a malformed message. The contract has no code for it; this one marks an error of the client. */
function malformed(status: number, message: string): Refusal {
  return { status, code: 'INVALID_FORM_BODY', message };
}

export const refusals = {
  badMessage: malformed(400, 'The request is not valid HTTP.'),
  timeout: malformed(408, 'The request took too long to arrive.'),
  headTooLarge: malformed(431, 'The head of the request is too large.'),
  connect: methodNotAllowed(ALLOWED_METHODS),
  overloaded: new MediaError('OVERLOADED', { bottleneck: 'requests', retryAfterSeconds: 1 }),
} as const satisfies Record<string, Refusal>;

/** Error of Node's parser, with the chunk in which it failed and the number of bytes parsed. */
export interface ParserError extends Error {
  readonly code?: string;
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
}

type FindMethods = (target: string) => string | undefined;

export function refusalOf(error: ParserError, findMethods: FindMethods): Refusal | undefined {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return refusals.timeout;
  if (error.code === 'HPE_HEADER_OVERFLOW') return refusals.headTooLarge;
  if (error.code === 'HPE_INVALID_METHOD') return refusalOfMethod(error, findMethods);
  return error.code?.startsWith('HPE_') === true ? refusals.badMessage : undefined;
}

/** A request line (RFC 9112 §3); a method is any token. */
const REQUEST_LINE = /^[!#$%&'*+.^_`|~\dA-Za-z-]+ (?<target>\/[!-~]*) HTTP\/1\.[01]$/;

/**
 * Returns the refusal of an unknown method, which Node's parser reports as an error although HTTP allows any token. A
 * request line in several chunks is a malformed message instead.
 */
function refusalOfMethod(
  { rawPacket, bytesParsed = 0 }: ParserError,
  findMethods: FindMethods,
): Refusal {
  const text = rawPacket?.toString('latin1') ?? '';
  // The chunk may begin with other requests.
  const start = bytesParsed === 0 ? 0 : text.lastIndexOf('\r\n', bytesParsed - 1) + 1;
  const line = text.slice(start, text.indexOf('\r\n', bytesParsed)).replace(/^\n/, '');
  const target = REQUEST_LINE.exec(line)?.groups?.target;
  return target === undefined ? refusals.badMessage : refuseMethod(findMethods(target));
}

export function countRefusal(meter: Meter, { status }: Refusal): void {
  meter.countOf({ resource: 'none', status, cache: 'none' }).responses += 1;
  if (status === refusals.overloaded.status) meter.count('refusals', 'requests');
}

/** Writes a refusal to the socket, as the last response of the connection. */
export function writeRefusal(socket: Socket, refusal: Refusal): void {
  const { status, headers, body } = formatRefusal(refusal);
  // Required of origins with a clock (RFC 9110 §6.6.1).
  const fields = Object.entries({
    ...headers,
    date: new Date().toUTCString(),
    connection: 'close',
  });
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${body}`);
}

export function formatRefusal(refusal: Refusal) {
  return formatFailure(refusal, { ...COMMON_HEADERS, 'cache-control': 'no-store' });
}
