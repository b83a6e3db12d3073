import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { type ErrorCode, errorRegistry } from '../media/errors.ts';
import type { AnswerMeter } from '../pipeline/meter.ts';
import { ALLOWED_METHODS, COMMON_HEADERS } from './common-headers.ts';

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

/** The refusal of what the parser could not read, by its error code; `undefined` for any other error. */
export function refusalOf(errorCode: string | undefined): Refusal | undefined {
  if (errorCode === 'ERR_HTTP_REQUEST_TIMEOUT') return refusals.timeout;
  if (errorCode === 'HPE_HEADER_OVERFLOW') return refusals.headTooLarge;
  return errorCode?.startsWith('HPE_') === true ? refusals.badMessage : undefined;
}

/** Counts a refusal that is about to be given: nobody behind the door hears of it. */
export function countRefusal(meter: AnswerMeter, { status }: Refusal): void {
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
  const headers = Object.entries({ ...formatHeaders(refusal, body), connection: 'close' });
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
