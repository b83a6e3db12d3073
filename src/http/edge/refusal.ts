import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { type ErrorCode, errorRegistry } from '../../contract/errors.ts';
import { isKnownPath } from '../../contract/media-request.ts';
import type { ResponseMeter } from '../../pipeline/meter.ts';
import { ALLOWED_METHODS, COMMON_HEADERS } from '../common-headers.ts';
import { formatHttpDate } from '../http-date.ts';

/**
 * An answer that is given at the door, to what never becomes a request of the service: it is no HTTP, too
 * much of it, or more than there is room for. In the error format of the contract.
 */
export interface Refusal {
  readonly status: number;
  readonly code: ErrorCode;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The contract has no code for what is wrong with a message; of its codes, this one says whose fault it is. */
function malformed(status: number, message: string): Refusal {
  return { status, code: 'INVALID_FORM_BODY', message };
}

function registered(code: ErrorCode, headers: Readonly<Record<string, string>>): Refusal {
  const { status, message } = errorRegistry[code];
  return { status, code, message, headers };
}

export const refusals = {
  badMessage: malformed(400, 'The request is not valid HTTP.'),
  timeout: malformed(408, 'The request has not come in time.'),
  headTooLarge: malformed(431, 'The head of the request is too large.'),
  connect: registered('METHOD_NOT_ALLOWED', { allow: ALLOWED_METHODS }),
  overloaded: registered('OVERLOADED', { 'retry-after': '1' }),
} as const satisfies Record<string, Refusal>;

/** An error of Node's parser of HTTP/1.1, with the bytes that it was given last, and how many it has read of them. */
export interface ParserError extends Error {
  readonly code?: string;
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
}

/** The refusal of what the parser could not read; `undefined` for any other error. */
export function refusalOf(error: ParserError): Refusal | undefined {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return refusals.timeout;
  if (error.code === 'HPE_HEADER_OVERFLOW') return refusals.headTooLarge;
  if (error.code === 'HPE_INVALID_METHOD') return refusalOfMethod(error);
  return error.code?.startsWith('HPE_') === true ? refusals.badMessage : undefined;
}

/** A line of RFC 9112 §3; a method is any token. */
const REQUEST_LINE = /^[!#$%&'*+.^_`|~\dA-Za-z-]+ (?<target>\/[!-~]*) HTTP\/1\.[01]$/;

/**
 * The parser knows methods by a list, and calls all others an error; of HTTP it is none. Not covered: a line
 * that comes in pieces, whose method is told from nonsense by nobody.
 */
function refusalOfMethod({ rawPacket, bytesParsed = 0 }: ParserError): Refusal {
  const text = rawPacket?.toString('latin1') ?? '';
  // More than one request may have come at once.
  const start = bytesParsed === 0 ? 0 : text.lastIndexOf('\r\n', bytesParsed - 1) + 1;
  const line = text.slice(start, text.indexOf('\r\n', bytesParsed)).replace(/^\n/, '');
  const target = REQUEST_LINE.exec(line)?.groups?.target;
  if (target === undefined) return refusals.badMessage;
  return isKnownPath(target) ? refusals.connect : registered('NOT_FOUND', {});
}

/** Counts a refusal that is about to be given: nobody behind the door hears of it. */
export function countRefusal(meter: ResponseMeter, { status }: Refusal): void {
  meter.countOf({ resource: 'none', status, cache: 'none' }).answers += 1;
  if (status === refusals.overloaded.status) meter.noteRefusal('requests');
}

/** Refuses a request that was read; of HTTP/1.1, its connection ends. */
export function sendRefusal(
  request: IncomingMessage,
  response: ServerResponse,
  refusal: Refusal,
): void {
  const body = formatBody(refusal);
  const isHttp2 = request.httpVersionMajor === 2;
  if (!isHttp2) response.shouldKeepAlive = false;
  response.writeHead(refusal.status, formatHeaders(refusal, body));
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** Refuses what was not, over the bare socket: the last that is said there. */
export function writeRefusal(socket: Socket, refusal: Refusal): void {
  const body = formatBody(refusal);
  // RFC 9110 §6.6.1: whoever has a clock tells the time, with any answer below 500.
  const ofMessage = { date: formatHttpDate(new Date()), connection: 'close' };
  const headers = Object.entries({ ...formatHeaders(refusal, body), ...ofMessage });
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.write(`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${lines}\r\n${body}`);
}

function formatHeaders(refusal: Refusal, body: string): Record<string, string> {
  return {
    ...COMMON_HEADERS,
    ...refusal.headers,
    'cache-control': 'no-store',
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
  };
}

function formatBody({ code, message }: Refusal): string {
  return JSON.stringify({ code, message, ...(code === 'INVALID_FORM_BODY' && { errors: [] }) });
}
