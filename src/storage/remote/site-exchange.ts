import { type Dispatcher, errors } from 'undici';
import { MediaError } from '../../contract/errors.ts';
import { siteError } from '../../pipeline/site-failure.ts';
import type { ConnectionLease, SiteConnections } from './site-connections.ts';
import type { ResponseHead } from './site-response.ts';

/** One request to one host, without its redirects. */
export interface SiteQuestion {
  readonly url: URL;
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** From the connection to the head of the response, in milliseconds. */
  readonly headTimeoutMs: number;
}

/** The response to it, with a body that must be read or destroyed: that gives the connection back. */
export interface SiteAnswer extends ResponseHead {
  readonly body: Dispatcher.ResponseData['body'];
}

/** Interim responses (RFC 9110 §15.2) before the one that counts; honest sites send one or two. */
const MAX_INTERIM = 8;

/**
 * Sends a request and waits for the head of the response. A connection that was kept, and that the site was just
 * closing, is not the site's fault: the request is sent once more.
 *
 * @throws MediaError `ORIGIN_ERROR`, `ORIGIN_TIMEOUT`, `OVERLOADED`; or `question.signal.reason`
 */
export async function askSite(
  connections: SiteConnections,
  question: SiteQuestion,
): Promise<SiteAnswer> {
  const { url, host, signal } = question;
  for (;;) {
    const lease = await connections.lease(url.origin, host, signal);
    try {
      return await ask(lease, question);
    } catch (error) {
      lease.release(false);
      signal.throwIfAborted();
      if (!lease.wasKept || !isClosing(error)) throw translate(error, host);
    }
  }
}

async function ask(lease: ConnectionLease, question: SiteQuestion): Promise<SiteAnswer> {
  const { url, host, headers, signal, headTimeoutMs } = question;
  const { client } = lease;
  const late = new AbortController();
  const expire = (): void =>
    late.abort(siteError(`No response in ${headTimeoutMs} ms.`, { reason: 'time', host }));
  let timer: NodeJS.Timeout | undefined;
  const startTimer = (): void => {
    clearTimeout(timer);
    timer = setTimeout(expire, headTimeoutMs);
  };
  // To open a connection has a deadline of its own.
  if (lease.wasKept) startTimer();
  else client.once('connect', startTimer);
  let interim = 0;
  const onInfo = (): void => {
    interim += 1;
    if (interim > MAX_INTERIM) throw new Error('The interim responses do not end.');
  };
  const path = `${url.pathname}${url.search}`;
  try {
    signal.throwIfAborted();
    const within = AbortSignal.any([signal, lease.signal, late.signal]);
    const response = await client.request({ method: 'GET', path, headers, onInfo, signal: within });
    const { statusCode: status, headers: fields, body } = response;
    lease.noteResponse();
    // Its reader sees its errors; one that is not read any more must not throw.
    body.on('error', () => undefined);
    body.once('close', () => lease.release(body.readableEnded && body.errored === null));
    return { status, fields, body };
  } finally {
    clearTimeout(timer);
    client.off('connect', startTimer);
  }
}

/** Whether a site may have closed a connection before it saw the request. */
function isClosing(error: unknown): boolean {
  return (
    error instanceof errors.SocketError ||
    error instanceof errors.ClientDestroyedError ||
    error instanceof errors.ClientClosedError ||
    (error instanceof Error && 'code' in error && error.code === 'ECONNRESET')
  );
}

/** What a transfer has failed with, in words for the operator. */
function translate(error: unknown, host: string): unknown {
  if (error instanceof MediaError) return error;
  return siteError('The site has not responded as a server should.', {
    reason: 'response',
    host,
    cause: error,
  });
}
