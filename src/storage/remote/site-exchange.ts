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
  /** Longest time from the connection to the first byte of the response, in milliseconds. */
  readonly firstByteTimeoutMs: number;
  /** Longest time from the connection to the end of the response's head, in milliseconds. */
  readonly headTimeoutMs: number;
  /** Longest pause of the body while its reader waits, in milliseconds; `undefined`: no bound. */
  readonly pauseMs: number | undefined;
}

/** The response, whose body must be read or destroyed to release the connection. */
export interface SiteAnswer extends ResponseHead {
  readonly body: Dispatcher.ResponseData['body'];
}

/** Most interim responses (RFC 9110 §15.2) before the final one; honest sites send one or two. */
const MAX_INTERIM = 8;

/**
 * Sends a request and waits for the head of the response. Retries on a new connection if the site was just closing the
 * kept one.
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
  const { url, host, headers, signal, firstByteTimeoutMs, headTimeoutMs, pauseMs = 0 } = question;
  const { client } = lease;
  const late = new AbortController();
  const expire = (what: string, timeoutMs: number): void =>
    late.abort(siteError(`No ${what} in ${timeoutMs} ms.`, { reason: 'time', host }));
  let firstByteTimer: NodeJS.Timeout | undefined;
  let headTimer: NodeJS.Timeout | undefined;
  const startTimers = (): void => {
    firstByteTimer = setTimeout(expire, firstByteTimeoutMs, 'response', firstByteTimeoutMs);
    headTimer = setTimeout(expire, headTimeoutMs, 'whole head', headTimeoutMs);
  };
  // Opening a connection has a deadline of its own.
  if (lease.wasKept) startTimers();
  else client.once('connect', startTimers);
  const watched = client.compose((dispatch) => (options, handler) => {
    handler.onResponseStarted = () => clearTimeout(firstByteTimer);
    return dispatch(options, handler);
  });
  let interim = 0;
  const onInfo = (): void => {
    interim += 1;
    if (interim > MAX_INTERIM) throw new Error('The interim responses do not end.');
  };
  const path = `${url.pathname}${url.search}`;
  try {
    signal.throwIfAborted();
    const within = AbortSignal.any([signal, lease.signal, late.signal]);
    const response = await watched.request({
      ...{ method: 'GET', path, headers, onInfo },
      ...{ signal: within, bodyTimeout: pauseMs },
    });
    const { statusCode: status, headers: fields, body } = response;
    lease.noteResponse();
    // The reader sees the body's errors; without a reader, they must not throw.
    body.on('error', () => undefined);
    body.once('close', () => lease.release(body.readableEnded && body.errored === null));
    return { status, fields, body };
  } finally {
    clearTimeout(firstByteTimer);
    clearTimeout(headTimer);
    client.off('connect', startTimers);
  }
}

/** Whether a site may have closed a connection before receiving the request. */
function isClosing(error: unknown): boolean {
  return (
    error instanceof errors.SocketError ||
    error instanceof errors.ClientDestroyedError ||
    error instanceof errors.ClientClosedError ||
    (error instanceof Error && 'code' in error && error.code === 'ECONNRESET')
  );
}

/** Translates the failure of a transfer for the operator. */
function translate(error: unknown, host: string): unknown {
  if (error instanceof MediaError) return error;
  return siteError('The site has not responded as a server should.', {
    reason: 'response',
    host,
    cause: error,
  });
}
