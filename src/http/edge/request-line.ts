import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** Bytes between the parts of a head as clients write it: a space, ` HTTP/1.1` and two line ends. */
const LINE_BYTES = ' '.length + ' HTTP/1.1\r\n'.length + '\r\n'.length;
const FIELD_BYTES = ': '.length + '\r\n'.length;

/** Node's parser, which is the socket's and shows the bytes that it is about to be through with. */
interface ParsedSocket extends Socket {
  readonly parser?: { readonly getCurrentBuffer?: () => Buffer | undefined };
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

  /** Whether the request line of a request that has just come is not as it must be. */
  isFaulty(request: IncomingMessage): boolean {
    if (this.#isBlind) return false;
    const socket: ParsedSocket = request.socket;
    const newBytes = socket.bytesRead - this.#readBytes;
    this.#readBytes = socket.bytesRead;
    const start = this.#nextAt;
    this.#isBlind = hasBody(request);
    if (start === 0 && newBytes === usualBytesOf(request)) return false;
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

function usualBytesOf({ method = '', url = '', rawHeaders }: IncomingMessage): number {
  let bytes = method.length + url.length + LINE_BYTES + (rawHeaders.length / 2) * FIELD_BYTES;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}

/** Whether a request tells of a body. */
export function hasBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = headers;
  return length !== '0' || coding !== undefined;
}
