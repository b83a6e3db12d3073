import type { IncomingMessage } from 'node:http';
import type { ClientLimits } from './client-limits.ts';
import { type Refusal, refusals } from './refusal.ts';

/**
 * The characters of a URI's host and port (RFC 3986 §3.2.2), and nothing at all (RFC 9110 §7.2). No comma:
 * a list is what becomes of two hosts on the way.
 */
const HOST = /^[\w.~%!$&'()*+;=:[\]-]*$/;

/**
 * What is wrong with the form of a message that Node's parser has let through, because it is lenient or
 * does not look: whoever reads such a message otherwise than we do (a proxy in between) could be made to
 * take one request for two, or one host for another.
 */
export function findFormFault(
  request: IncomingMessage,
  isHttp2: boolean,
  limits: ClientLimits,
): Refusal | undefined {
  const { rawHeaders } = request;
  if (rawHeaders.length > 2 * limits.maxHeaderFields) return refusals.headTooLarge;
  // nghttp2 checks form, framing and hosts by itself, but its own bound of size just resets the stream.
  if (isHttp2) {
    const headBytes = rawHeaders.reduce((sum, text) => sum + text.length, 0);
    return headBytes > limits.maxHeadBytes ? refusals.headTooLarge : undefined;
  }
  return isWellFormed(request) ? undefined : refusals.badMessage;
}

function isWellFormed({ httpVersion, rawHeaders, headers }: IncomingMessage): boolean {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return false;
  // One host, and none only in HTTP/1.0 (RFC 9112 §3.2). Node keeps the first of several.
  const hosts = rawHeaders.filter(
    (name, index) => index % 2 === 0 && name.length === 4 && name.toLowerCase() === 'host',
  ).length;
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) return false;
  const { host = '', 'transfer-encoding': coding } = headers;
  if (!HOST.test(host)) return false;
  // No other coding is known here, and none at all in HTTP/1.0 (RFC 9112 §6.1).
  return coding === undefined || (coding.toLowerCase() === 'chunked' && httpVersion === '1.1');
}
