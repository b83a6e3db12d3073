import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { type ErrorCode, MediaError } from '../../contract/errors.ts';
import type { Meter } from '../../pipeline/meter.ts';
import { type Failure, formatFailure, refuseMethod } from '../error-response.ts';
import { formatHttpDate } from '../http-date.ts';
import { COMMON_HEADERS } from '../response-headers.ts';

/**
 * Response to a message that never becomes a request of the service: it is not HTTP, too much of it, or one
 * request too many.
 */
export interface Refusal extends Failure {
  readonly code: ErrorCode;
}

/** The contract has no code for what is wrong with a message; of its codes, this one says whose fault it is. */
function malformed(status: number, message: string): Refusal {
  return { status, code: 'INVALID_FORM_BODY', message };
}

export const refusals = {
  badMessage: malformed(400, 'The request is not valid HTTP.'),
  timeout: malformed(408, 'The request has not come in time.'),
  headTooLarge: malformed(431, 'The head of the request is too large.'),
  connect: new MediaError('METHOD_NOT_ALLOWED'),
  overloaded: new MediaError('OVERLOADED', { bottleneck: 'requests', retryAfterSeconds: 1 }),
} as const satisfies Record<string, Refusal>;

/** An error of Node's parser, with the bytes that it was given last, and how many it has read of them. */
export interface ParserError extends Error {
  readonly code?: string;
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
}

/** The methods that there are at a request target, as in `Allow`; `undefined`: there is nothing. */
export type FindMethods = (target: string) => string | undefined;

/** The refusal of what the parser could not read; `undefined` for any other error. */
export function refusalOf(error: ParserError, findMethods: FindMethods): Refusal | undefined {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return refusals.timeout;
  if (error.code === 'HPE_HEADER_OVERFLOW') return refusals.headTooLarge;
  if (error.code === 'HPE_INVALID_METHOD') return refusalOfMethod(error, findMethods);
  return error.code?.startsWith('HPE_') === true ? refusals.badMessage : undefined;
}

/** A line of RFC 9112 §3; a method is any token. */
const REQUEST_LINE = /^[!#$%&'*+.^_`|~\dA-Za-z-]+ (?<target>\/[!-~]*) HTTP\/1\.[01]$/;

/**
 * The parser knows methods by a list, and calls all others an error; of HTTP it is none. Not covered: a line
 * that comes in pieces, in which no method can be told from nonsense.
 */
function refusalOfMethod(
  { rawPacket, bytesParsed = 0 }: ParserError,
  findMethods: FindMethods,
): Refusal {
  const text = rawPacket?.toString('latin1') ?? '';
  // More than one request may have come at once.
  const start = bytesParsed === 0 ? 0 : text.lastIndexOf('\r\n', bytesParsed - 1) + 1;
  const line = text.slice(start, text.indexOf('\r\n', bytesParsed)).replace(/^\n/, '');
  const target = REQUEST_LINE.exec(line)?.groups?.target;
  return target === undefined ? refusals.badMessage : refuseMethod(findMethods(target));
}

/** Counts a refusal that is about to be sent: nothing behind the listener sees it. */
export function countRefusal(meter: Meter, { status }: Refusal): void {
  meter.countOf({ resource: 'none', status, cache: 'none' }).responses += 1;
  if (status === refusals.overloaded.status) meter.count('refusals', 'requests');
}

/**
 * Refuses a request whose head was read. Its connection ends, unless it was merely one too many and has no body: a
 * proxy that lost its connections under load would open as many anew.
 */
export function sendRefusal(
  request: IncomingMessage,
  response: ServerResponse,
  refusal: Refusal,
): void {
  const { status, headers, body } = formatRefusal(refusal);
  if (refusal !== refusals.overloaded || hasBody(request)) response.shouldKeepAlive = false;
  response.writeHead(status, headers);
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** Whether a request tells of a body. */
export function hasBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = headers;
  return length !== '0' || coding !== undefined;
}

/** Refuses what was not, over the bare socket; nothing more is written to it. */
export function writeRefusal(socket: Socket, refusal: Refusal): void {
  const { status, headers, body } = formatRefusal(refusal);
  // An origin with a clock sends it with any response below 500 (RFC 9110 §6.6.1).
  const fields = Object.entries({
    ...headers,
    date: formatHttpDate(new Date()),
    connection: 'close',
  });
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${body}`);
}

function formatRefusal(refusal: Refusal) {
  return formatFailure(refusal, { ...COMMON_HEADERS, 'cache-control': 'no-store' });
}
