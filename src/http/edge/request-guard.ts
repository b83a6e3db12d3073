import type { IncomingMessage } from 'node:http';
import type { ClientLimits } from './client-limits.ts';
import { type Refusal, refusals } from './refusal.ts';

/**
 * The characters of a URI's host and port (RFC 3986 §3.2.2), and nothing at all (RFC 9110 §7.2). No comma:
 * a list is what becomes of two hosts on the way.
 */
const HOST = /^[\w.~%!$&'()*+;=:[\]-]*$/;

/**
 * Finds the fault in the form of a message that Node's parser has let through, because it is lenient or
 * does not look: a proxy in between that reads such a message otherwise than we do could be made to take
 * one request for two, or one host for another.
 */
export function findFormFault(
  { httpVersion, rawHeaders, headers, url = '' }: IncomingMessage,
  limits: Pick<ClientLimits, 'maxHeadBytes' | 'maxHeaderFields'>,
): Refusal | undefined {
  if (rawHeaders.length > 2 * limits.maxHeaderFields) return refusals.headTooLarge;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return refusals.badMessage;
  // One host, and none only in HTTP/1.0 (RFC 9112 §3.2). Node keeps the first of several.
  let hosts = 0;
  let headBytes = url.length;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
    headBytes += (name?.length ?? 0) + (rawHeaders[index + 1]?.length ?? 0);
  }
  // As Node's parser counts, which has the bound of uploads where there are any.
  if (headBytes >= limits.maxHeadBytes) return refusals.headTooLarge;
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) return refusals.badMessage;
  const { host = '', 'transfer-encoding': coding } = headers;
  if (!HOST.test(host)) return refusals.badMessage;
  // No other coding is known here, and none at all in HTTP/1.0 (RFC 9112 §6.1).
  const isCodingKnown =
    coding === undefined || (coding.toLowerCase() === 'chunked' && httpVersion === '1.1');
  return isCodingKnown ? undefined : refusals.badMessage;
}
