import type { Socket } from 'node:net';
import { Client, type Dispatcher } from 'undici';
import { MediaError } from '../../contract/errors.ts';
import { Countdown } from '../../pipeline/abort.ts';
import { Semaphore, type SemaphoreLimits } from '../../pipeline/semaphore.ts';
import { siteError } from '../../pipeline/site-failure.ts';
import { type ConnectorParts, connectToSite } from './connector.ts';
import type { ResponseHead } from './response.ts';

/** Bounds and deadlines of requests to other sites. */
export interface ExchangeLimits {
  /** Concurrent connections to one host, and requests that wait for one. */
  readonly perHost: SemaphoreLimits;
  /** The same for all hosts. */
  readonly inAll: SemaphoreLimits;
  /** Longest time from the connection to the first byte of its response, in milliseconds. */
  readonly firstByteTimeoutMs: number;
  /** Longest time from the connection to the end of the response's head, in milliseconds. */
  readonly headTimeoutMs: number;
}

/** One request to one host, without its redirects. */
export interface SiteQuestion {
  readonly url: URL;
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Longest pause of the body while its reader waits, in milliseconds; 0: no bound. */
  readonly pauseMs: number;
}

/** The response, whose body must be read or destroyed to release the connection. */
export interface SiteAnswer extends ResponseHead {
  readonly body: Dispatcher.ResponseData['body'];
}

/** An open connection, for one request at a time. */
interface Connection {
  readonly host: string;
  readonly origin: string;
  readonly socket: Socket;
  readonly client: Client;
}

/** Keep-alive time of a connection, in milliseconds; most servers keep it for 5 s or more. */
const IDLE_TIMEOUT_MS = 4_000;

/** Time for a site to close a connection after our FIN, in milliseconds. */
const CLOSING_TIMEOUT_MS = 500;

/** Most bytes of a response's head, and of its trailers. */
const MAX_HEAD_BYTES = 32 * 1024;

/** Most interim responses (RFC 9110 §15.2) before the final one; honest sites send one or two. */
const MAX_INTERIM = 8;

/**
 * Requests to other sites, with bounds of connections per host and in all. A request waits for its host first, so that
 * a slow host never gets more than its share of the whole.
 *
 * Connections are kept for a while, idle ones included in both bounds: with one for each request, a site that is 50 ms
 * away gives 0.3 of the responses (measured, TLS 1.3).
 */
export class SiteExchange {
  readonly #limits: ExchangeLimits;
  readonly #connector: ConnectorParts;
  readonly #all: Semaphore;
  readonly #hosts = new Map<string, Semaphore>();
  /** Connections without a request, the longest idle first. */
  readonly #idle = new Set<Connection>();

  constructor(limits: ExchangeLimits, connector: ConnectorParts) {
    this.#limits = limits;
    this.#connector = connector;
    this.#all = new Semaphore(limits.inAll);
  }

  /** @throws MediaError `ORIGIN_ERROR`, `ORIGIN_TIMEOUT`, `OVERLOADED`; or `question.signal.reason` */
  async ask(question: SiteQuestion): Promise<SiteAnswer> {
    const { url, host, signal } = question;
    const leaveHost = await this.#enterHost(host, signal);
    let connection = this.#takeIdle(host, url.origin);
    try {
      let answer: SiteAnswer | undefined;
      if (connection?.origin === url.origin) {
        answer = await this.#send(connection, question).catch((error: unknown) => {
          // The site may have closed the connection before it received the request (RFC 9112 §9.3.1).
          if (error instanceof MediaError || signal.aborted) throw error;
          return undefined;
        });
      }
      if (answer === undefined) {
        await close(connection);
        connection = await this.#connect(question);
        answer = await this.#send(connection, question);
      }
      const [{ body }, used] = [answer, connection];
      // The reader sees the body's errors; without a reader, they must not throw.
      body.on('error', () => undefined);
      body.once('close', () => void this.#keep(used).then(leaveHost));
      return answer;
    } catch (error) {
      await cutOff(connection);
      leaveHost();
      signal.throwIfAborted();
      if (error instanceof MediaError) throw error;
      const message = 'The site has not responded as a server should.';
      throw siteError(message, { reason: 'response', host, cause: error });
    }
  }

  async #enterHost(host: string, signal: AbortSignal): Promise<() => void> {
    const semaphore = this.#hosts.get(host) ?? new Semaphore(this.#limits.perHost);
    this.#hosts.set(host, semaphore);
    const forget = (): void => {
      const isUnused = semaphore.inside === 0 && semaphore.waiting === 0;
      if (isUnused && this.#hosts.get(host) === semaphore) this.#hosts.delete(host);
    };
    try {
      const leave = await semaphore.enter(signal);
      return () => {
        leave();
        forget();
      };
    } catch (error) {
      forget();
      throw error;
    }
  }

  /** Takes an idle connection to a host; one of another origin only has to be closed, for the bound of the host. */
  #takeIdle(host: string, origin: string): Connection | undefined {
    const ofHost = [...this.#idle].filter((connection) => connection.host === host);
    const taken = ofHost.findLast((connection) => connection.origin === origin) ?? ofHost[0];
    if (taken !== undefined) this.#idle.delete(taken);
    return taken;
  }

  async #connect({ url, host, signal }: SiteQuestion): Promise<Connection> {
    const leaveAll = await this.#enterAll(signal);
    try {
      const socket = await connectToSite(this.#connector, url, host, signal);
      const { origin } = url;
      const connection = { host, origin, socket, client: createClient(origin, socket) };
      socket.once('close', () => {
        this.#idle.delete(connection);
        leaveAll();
      });
      return connection;
    } catch (error) {
      leaveAll();
      throw error;
    }
  }

  /** Waits for a place among all; an idle connection gives its place up. */
  #enterAll(signal: AbortSignal): Promise<() => void> {
    const [longestIdle] = this.#idle;
    if (this.#all.isExhausted && longestIdle !== undefined) {
      this.#idle.delete(longestIdle);
      void close(longestIdle);
    }
    return this.#all.enter(signal);
  }

  /** Keeps a connection for the next request, unless others wait for its place. */
  async #keep(connection: Connection | undefined): Promise<void> {
    const isOpen = connection?.socket.destroyed === false;
    if (isOpen && this.#all.waiting === 0) this.#idle.add(connection);
    else await close(connection);
  }

  async #send(
    { client, socket }: Connection,
    { url, host, headers, signal, pauseMs }: SiteQuestion,
  ): Promise<SiteAnswer> {
    const { firstByteTimeoutMs, headTimeoutMs } = this.#limits;
    const ending = new AbortController();
    const bytesBefore = socket.bytesRead;
    const expire = (what: string, timeoutMs: number): void =>
      ending.abort(siteError(`No ${what} in ${timeoutMs} ms.`, { reason: 'time', host }));
    const firstByte = new Countdown(firstByteTimeoutMs, () => {
      if (socket.bytesRead === bytesBefore) expire('response', firstByteTimeoutMs);
    });
    const head = new Countdown(headTimeoutMs, () => expire('whole head', headTimeoutMs));
    let interim = 0;
    const onInfo = (): void => {
      interim += 1;
      if (interim > MAX_INTERIM) throw new Error('The interim responses do not end.');
    };
    const path = `${url.pathname}${url.search}`;
    try {
      const response = await client.request({
        ...{ method: 'GET', path, headers, onInfo },
        ...{ signal: AbortSignal.any([signal, ending.signal]), bodyTimeout: pauseMs },
      });
      const { statusCode: status, headers: fields, body } = response;
      return { status, fields, body };
    } finally {
      firstByte.stop();
      head.stop();
    }
  }
}

/** Creates the client of one connection; it does not open another one. */
function createClient(origin: string, socket: Socket): Client {
  let isTaken = false;
  const client = new Client(origin, {
    connect: (_options, done) => {
      // The first call is made while the client sends a request; its response may only come later.
      if (isTaken) done(new Error('The site has closed the connection.'), null);
      else queueMicrotask(() => done(null, socket));
      isTaken = true;
    },
    maxHeaderSize: MAX_HEAD_BYTES,
    // undici's own deadlines have a resolution of seconds; the head's is ours, a body's comes with its request.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
    keepAliveMaxTimeout: IDLE_TIMEOUT_MS,
    allowH2: false,
  });
  return client.once('connect', () => skipContinue(socket));
}

/** undici's parser of a socket, by a symbol of this description. */
interface Parser {
  onHeadersComplete(status: number, ...rest: readonly unknown[]): unknown;
}

/**
 * Has undici skip a 100 (Continue) as it skips a 103: it destroys a connection that sends one unasked, and has no option
 * for that. A client must accept interim responses that it does not expect (RFC 9110 §15.2).
 */
function skipContinue(socket: Socket): void {
  const [parser] = Object.getOwnPropertySymbols(socket).flatMap((symbol) =>
    symbol.description === 'parser' ? [Reflect.get(socket, symbol) as Parser] : [],
  );
  if (parser === undefined) return;
  const complete = parser.onHeadersComplete.bind(parser);
  parser.onHeadersComplete = (status, ...rest) => complete(status === 100 ? 103 : status, ...rest);
}

/**
 * Closes a connection without a request; resolves when the site has closed it as well, which counts it until then. One that
 * the site does not close in time is cut off.
 */
function close(connection: Connection | undefined): Promise<void> {
  if (connection === undefined) return Promise.resolve();
  // undici destroys the socket at the site's FIN.
  connection.socket.end();
  const timer = setTimeout(() => connection.socket.destroy(), CLOSING_TIMEOUT_MS);
  return closed(connection.socket).finally(() => clearTimeout(timer));
}

/** Cuts off a connection whose request has failed. */
function cutOff(connection: Connection | undefined): Promise<void> {
  return connection === undefined ? Promise.resolve() : closed(connection.socket.destroy());
}

/** Resolves when the system has closed a socket. */
async function closed(socket: Socket): Promise<void> {
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
}
