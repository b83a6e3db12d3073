import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { ClientLimits } from './client-limits.ts';
import { hasBody, type Refusal, refusals } from './refusal.ts';

/**
 * The characters of a URI's host and port (RFC 3986 §3.2.2), and nothing at all (RFC 9110 §7.2). No comma:
 * a list is what becomes of two hosts on the way.
 */
const HOST = /^[\w.~%!$&'()*+;=:[\]-]*$/;

/** Bytes between the parts of a head as clients write it: a space, ` HTTP/1.1` and two line ends. */
const LINE_BYTES = ' '.length + ' HTTP/1.1\r\n'.length + '\r\n'.length;
const FIELD_BYTES = ': '.length + '\r\n'.length;

/** Node's parser, which is the socket's and shows the bytes that it is about to be through with. */
interface ParsedSocket extends Socket {
  readonly parser?: { readonly getCurrentBuffer?: () => Buffer | undefined };
}

/**
 * Finds the fault in the form of a message that Node's parser has let through, because the parser is lenient or does
 * not look: a proxy in between that reads such a message otherwise than we do could be made to take one request for
 * two, or one host for another.
 *
 * @param requestLines the watch of the request's connection
 */
export function findFormFault(
  request: IncomingMessage,
  limits: Pick<ClientLimits, 'maxHeadBytes' | 'maxHeaderFields'>,
  requestLines: RequestLineWatch,
): Refusal | undefined {
  const { httpVersion, rawHeaders, headers, method = '', url = '' } = request;
  if (rawHeaders.length > 2 * limits.maxHeaderFields) return refusals.headTooLarge;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return refusals.badMessage;
  // One host, and none only in HTTP/1.0 (RFC 9112 §3.2). Node keeps the first of several.
  let hosts = 0;
  let fieldBytes = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
    fieldBytes += (name?.length ?? 0) + (rawHeaders[index + 1]?.length ?? 0);
  }
  // As Node's parser counts, which has the bound of uploads where there are any.
  if (url.length + fieldBytes >= limits.maxHeadBytes) return refusals.headTooLarge;
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) return refusals.badMessage;
  const { host = '', 'transfer-encoding': coding } = headers;
  if (!HOST.test(host)) return refusals.badMessage;
  // No other coding is known here, and none at all in HTTP/1.0 (RFC 9112 §6.1).
  const isCodingKnown =
    coding === undefined || (coding.toLowerCase() === 'chunked' && httpVersion === '1.1');
  if (!isCodingKnown) return refusals.badMessage;
  const gapBytes = LINE_BYTES + (rawHeaders.length / 2) * FIELD_BYTES;
  const usualBytes = method.length + url.length + fieldBytes + gapBytes;
  return requestLines.isFaulty(request, usualBytes) ? refusals.badMessage : undefined;
}

/**
 * Watches what Node's parser passes over without a word: a bare LF before a request line, and spaces beyond the first
 * one in it (RFC 9112 §2.2 and §3). One of these watches a connection.
 *
 * To look at every byte would cost a tenth of what a hit takes, so it is done only where a head has another length
 * than the usual form of it. Not covered: a head that makes up for its two spaces elsewhere, one that comes in pieces,
 * and what follows one of these, or a body, on its connection.
 */
export class RequestLineWatch {
  #readBytes = 0;
  /** Where the next head begins in the piece that the parser has; 0: in one that is still to come. */
  #nextAt = 0;
  #isBlind = false;

  /**
   * Whether the request line of a request that has just come is not as it must be.
   *
   * @param usualBytes length of the request's head as clients write it
   */
  isFaulty(request: IncomingMessage, usualBytes: number): boolean {
    if (this.#isBlind) return false;
    const socket: ParsedSocket = request.socket;
    const newBytes = socket.bytesRead - this.#readBytes;
    this.#readBytes = socket.bytesRead;
    const start = this.#nextAt;
    this.#isBlind = hasBody(request);
    if (start === 0 && newBytes === usualBytes) return false;
    const piece = socket.parser?.getCurrentBuffer?.();
    const isWhole = newBytes === (start === 0 ? piece?.length : 0);
    const text = piece?.toString('latin1', start) ?? '';
    const [lineEnds = ''] = /^[\r\n]*/.exec(text) ?? [];
    const end = text.indexOf('\r\n\r\n', lineEnds.length) + 4;
    if (!isWhole || end < 4) {
      this.#isBlind = true;
      return false;
    }
    this.#nextAt = end === text.length ? 0 : start + end;
    return lineEnds.replaceAll('\r\n', '') !== '' || /^[^ ]* {2}/.test(text.slice(lineEnds.length));
  }
}
