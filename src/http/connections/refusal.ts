import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { type ErrorCode, MediaError, methodNotAllowed } from '../../contract/errors.ts';
import type { Meter } from '../../pipeline/meter.ts';
import { type Failure, formatFailure, refuseMethod } from '../failure.ts';
import { ALLOWED_METHODS, COMMON_HEADERS } from '../head.ts';

/** Response to a message that the service never sees: it is not HTTP, too large, or one request too many. */
export interface Refusal extends Failure {
  readonly code: ErrorCode;
}

/** The contract has no code for a malformed message; this code at least says whose fault it is. */
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

/** Error of Node's parser, with the chunk that it failed in, and the number of bytes that it had read of the chunk. */
export interface ParserError extends Error {
  readonly code?: string;
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
}

/** Returns the methods at a request target, as in `Allow`; `undefined` if the path is unknown. */
export type FindMethods = (target: string) => string | undefined;

/** Returns the refusal of what the parser could not read; `undefined` for any other error. */
export function refusalOf(error: ParserError, findMethods: FindMethods): Refusal | undefined {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return refusals.timeout;
  if (error.code === 'HPE_HEADER_OVERFLOW') return refusals.headTooLarge;
  if (error.code === 'HPE_INVALID_METHOD') return refusalOfMethod(error, findMethods);
  return error.code?.startsWith('HPE_') === true ? refusals.badMessage : undefined;
}

/** A request line (RFC 9112 §3); a method is any token. */
const REQUEST_LINE = /^[!#$%&'*+.^_`|~\dA-Za-z-]+ (?<target>\/[!-~]*) HTTP\/1\.[01]$/;

/**
 * The parser knows a list of methods and reports all others as errors, although HTTP allows any token. Not covered: a
 * line that comes in pieces, in which a method cannot be told from nonsense.
 */
function refusalOfMethod(
  { rawPacket, bytesParsed = 0 }: ParserError,
  findMethods: FindMethods,
): Refusal {
  const text = rawPacket?.toString('latin1') ?? '';
  // Other requests may stand before it in the chunk.
  const start = bytesParsed === 0 ? 0 : text.lastIndexOf('\r\n', bytesParsed - 1) + 1;
  const line = text.slice(start, text.indexOf('\r\n', bytesParsed)).replace(/^\n/, '');
  const target = REQUEST_LINE.exec(line)?.groups?.target;
  return target === undefined ? refusals.badMessage : refuseMethod(findMethods(target));
}

/** The characters of a URI's host and port (RFC 3986 §3.2.2), or none (RFC 9110 §7.2); no comma, which joins two hosts. */
const HOST = /^[\w.~%!$&'()*+;=:[\]-]*$/;

/**
 * Finds the fault in the form of a message that Node's parser has accepted, because the parser is lenient or does not
 * check. A proxy in front that reads such a message in another way could take one request for two, or one host for
 * another. Not covered, since proxies normalize them: a bare LF before the request line, and two spaces in it.
 */
export function findFormFault(
  request: IncomingMessage,
  limits: { readonly maxHeadBytes: number; readonly maxHeaderFields: number },
): Refusal | undefined {
  const { httpVersion, rawHeaders, headers, url = '' } = request;
  if (rawHeaders.length > 2 * limits.maxHeaderFields) return refusals.headTooLarge;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return refusals.badMessage;
  // One host; only HTTP/1.0 may have none (RFC 9112 §3.2). Node keeps the first of several.
  let hosts = 0;
  let fieldBytes = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
    fieldBytes += (name?.length ?? 0) + (rawHeaders[index + 1]?.length ?? 0);
  }
  // Counted as Node's parser does, whose own bound is that of uploads where there are uploads.
  if (url.length + fieldBytes >= limits.maxHeadBytes) return refusals.headTooLarge;
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) return refusals.badMessage;
  const { host = '', 'transfer-encoding': coding } = headers;
  if (!HOST.test(host)) return refusals.badMessage;
  // We know one coding; HTTP/1.0 has none (RFC 9112 §6.1).
  const isCodingKnown =
    coding === undefined || (coding.toLowerCase() === 'chunked' && httpVersion === '1.1');
  return isCodingKnown ? undefined : refusals.badMessage;
}

/** Whether a request announces a body. */
export function hasBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = headers;
  return length !== '0' || coding !== undefined;
}

/** Counts a refusal that is about to be sent, since nothing behind the listener sees it. */
export function countRefusal(meter: Meter, { status }: Refusal): void {
  meter.countOf({ resource: 'none', status, cache: 'none' }).responses += 1;
  if (status === refusals.overloaded.status) meter.count('refusals', 'requests');
}

/**
 * Rejects a request whose head was read, and ends the connection, except where it was only one request too many and has
 * no body: a proxy that lost its connections under load would open as many new ones.
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

/** Rejects a message that has no request, over the bare socket; nothing may be written after it. */
export function writeRefusal(socket: Socket, refusal: Refusal): void {
  const { status, headers, body } = formatRefusal(refusal);
  // An origin with a clock sends it with any response below 500 (RFC 9110 §6.6.1).
  const fields = Object.entries({
    ...headers,
    date: new Date().toUTCString(),
    connection: 'close',
  });
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${body}`);
}

function formatRefusal(refusal: Refusal) {
  return formatFailure(refusal, { ...COMMON_HEADERS, 'cache-control': 'no-store' });
}
