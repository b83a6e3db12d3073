import type { Socket } from 'node:net';
import { Client, type Dispatcher } from 'undici';
import { MediaError } from '../../contract/errors.ts';
import { Countdown } from '../../pipeline/abort.ts';
import { Semaphore, type SemaphoreLimits } from '../../pipeline/semaphore.ts';
import { siteError } from '../../pipeline/site-failure.ts';
import type { ConnectToSite } from './connector.ts';
import type { ResponseHead } from './response.ts';

export interface SiteClientLimits {
  /** Concurrent connections to one host, and requests that wait for one. */
  readonly perHost: SemaphoreLimits;
  readonly inAll: SemaphoreLimits;
  readonly firstByteTimeoutMs: number;
  /** Includes the time before the first byte. */
  readonly headTimeoutMs: number;
}

export interface SiteRequest {
  readonly url: URL;
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Maximum pause of the body while its reader waits; 0 for no maximum. */
  readonly pauseMs: number;
}

/** Response, whose body must be read or destroyed to free the connection. */
export interface SiteResponse extends ResponseHead {
  readonly body: Dispatcher.ResponseData['body'];
}

interface Connection {
  readonly host: string;
  readonly origin: string;
  readonly socket: Socket;
  readonly client: Client;
}

/** Most servers keep idle connections open for 5 s or more. */
const IDLE_TIMEOUT_MS = 4_000;

/** Time for a site to close a connection after our FIN. */
const CLOSING_TIMEOUT_MS = 500;

/** Maximum size of response headers, and of trailers. */
const MAX_HEAD_BYTES = 32 * 1024;

/** Maximum number of interim responses (RFC 9110 §15.2); honest sites send one or two. */
const MAX_INTERIM = 8;

/**
 * HTTP client for other sites, with limits of connections per host and in total. A request waits for its host first, so
 * that a slow host cannot use up all connections. Idle connections are reused, and count for both limits: without
 * reuse, the throughput of a site 50 ms away fell to 0.3 (measured, TLS 1.3).
 */
export class SiteClient {
  readonly #limits: SiteClientLimits;
  readonly #connectToSite: ConnectToSite;
  readonly #all: Semaphore;
  readonly #hosts = new Map<string, Semaphore>();
  /** In the order of their last use. */
  readonly #idle = new Set<Connection>();

  constructor(limits: SiteClientLimits, connectToSite: ConnectToSite) {
    this.#limits = limits;
    this.#connectToSite = connectToSite;
    this.#all = new Semaphore(limits.inAll);
  }

  /** @throws MediaError `ORIGIN_ERROR`, `ORIGIN_TIMEOUT`, `OVERLOADED`; or `request.signal.reason` */
  async fetch(request: SiteRequest): Promise<SiteResponse> {
    const { url, host, signal } = request;
    const freeHost = await this.#acquireHost(host, signal);
    let connection = this.#takeIdle(host, url.origin);
    try {
      let response: SiteResponse | undefined;
      if (connection?.origin === url.origin) {
        response = await this.#send(connection, request).catch((error: unknown) => {
          // The site may have closed the connection before it received the request (RFC 9112 §9.3.1).
          if (error instanceof MediaError || signal.aborted) throw error;
          return undefined;
        });
      }
      if (response === undefined) {
        await close(connection);
        connection = await this.#connect(request);
        response = await this.#send(connection, request);
      }
      const [{ body }, used] = [response, connection];
      // Errors reach the reader of the body; without a reader, they must not throw.
      body.on('error', () => undefined);
      body.once('close', () => void this.#keep(used).then(freeHost));
      return response;
    } catch (error) {
      await cutOff(connection);
      freeHost();
      signal.throwIfAborted();
      if (error instanceof MediaError) throw error;
      const message = 'The response of the site is invalid.';
      throw siteError(message, { reason: 'response', host, cause: error });
    }
  }

  async #acquireHost(host: string, signal: AbortSignal): Promise<() => void> {
    const semaphore = this.#hosts.get(host) ?? new Semaphore(this.#limits.perHost);
    this.#hosts.set(host, semaphore);
    const forget = (): void => {
      const isUnused = semaphore.inUse === 0 && semaphore.waiting === 0;
      if (isUnused && this.#hosts.get(host) === semaphore) this.#hosts.delete(host);
    };
    try {
      const free = await semaphore.acquire(signal);
      return () => {
        free();
        forget();
      };
    } catch (error) {
      forget();
      throw error;
    }
  }

  /** Returns an idle connection to the host, possibly of another origin, which the caller closes. */
  #takeIdle(host: string, origin: string): Connection | undefined {
    const ofHost = [...this.#idle].filter((connection) => connection.host === host);
    const taken = ofHost.findLast((connection) => connection.origin === origin) ?? ofHost[0];
    if (taken !== undefined) this.#idle.delete(taken);
    return taken;
  }

  async #connect({ url, host, signal }: SiteRequest): Promise<Connection> {
    const freeConnection = await this.#acquireAll(signal);
    try {
      const socket = await this.#connectToSite(url, host, signal);
      const { origin } = url;
      const connection = { host, origin, socket, client: createClient(origin, socket) };
      socket.once('close', () => {
        this.#idle.delete(connection);
        freeConnection();
      });
      return connection;
    } catch (error) {
      freeConnection();
      throw error;
    }
  }

  /** May close an idle connection. */
  #acquireAll(signal: AbortSignal): Promise<() => void> {
    const [longestIdle] = this.#idle;
    if (this.#all.isExhausted && longestIdle !== undefined) {
      this.#idle.delete(longestIdle);
      void close(longestIdle);
    }
    return this.#all.acquire(signal);
  }

  async #keep(connection: Connection | undefined): Promise<void> {
    const isOpen = connection?.socket.destroyed === false;
    if (isOpen && this.#all.waiting === 0) this.#idle.add(connection);
    else await close(connection);
  }

  async #send(
    { client, socket }: Connection,
    { url, host, headers, signal, pauseMs }: SiteRequest,
  ): Promise<SiteResponse> {
    const { firstByteTimeoutMs, headTimeoutMs } = this.#limits;
    const ending = new AbortController();
    const bytesBefore = socket.bytesRead;
    const expire = (missing: string, timeoutMs: number): void =>
      ending.abort(siteError(`No ${missing} in ${timeoutMs} ms.`, { reason: 'time', host }));
    const firstByte = new Countdown(firstByteTimeoutMs, () => {
      if (socket.bytesRead === bytesBefore) expire('response', firstByteTimeoutMs);
    });
    const head = new Countdown(headTimeoutMs, () => expire('complete head', headTimeoutMs));
    let interim = 0;
    const onInfo = (): void => {
      interim += 1;
      if (interim > MAX_INTERIM) throw new Error('The interim responses do not end.');
    };
    const path = `${url.pathname}${url.search}`;
    try {
      const response = await client.request({
        method: 'GET',
        path,
        headers,
        onInfo,
        signal: AbortSignal.any([signal, ending.signal]),
        bodyTimeout: pauseMs,
      });
      const { statusCode: status, headers: fields, body } = response;
      return { status, fields, body };
    } finally {
      firstByte.stop();
      head.stop();
    }
  }
}

function createClient(origin: string, socket: Socket): Client {
  let isUsed = false;
  const client = new Client(origin, {
    connect: (_options, done) => {
      // The first call happens while the client sends a request, so `done` must be called asynchronously.
      if (isUsed) done(new Error('The site has closed the connection.'), null);
      else queueMicrotask(() => done(null, socket));
      isUsed = true;
    },
    maxHeaderSize: MAX_HEAD_BYTES,
    // undici's deadlines have a resolution of seconds; `#send` has its own.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
    keepAliveMaxTimeout: IDLE_TIMEOUT_MS,
    allowH2: false,
  });
  return client.once('connect', () => skipContinue(socket));
}

interface Parser {
  onHeadersComplete(status: number, ...rest: readonly unknown[]): unknown;
}

/**
 * Makes undici skip a 100 (Continue) like a 103, since it destroys connections that send one unexpectedly. Clients must
 * accept unexpected interim responses (RFC 9110 §15.2).
 */
function skipContinue(socket: Socket): void {
  const [parser] = Object.getOwnPropertySymbols(socket).flatMap((symbol) =>
    symbol.description === 'parser' ? [Reflect.get(socket, symbol) as Parser] : [],
  );
  if (parser === undefined) return;
  const complete = parser.onHeadersComplete.bind(parser);
  parser.onHeadersComplete = (status, ...rest) => complete(status === 100 ? 103 : status, ...rest);
}

/** Resolves when the site has closed the connection as well, or after a timeout. */
function close(connection: Connection | undefined): Promise<void> {
  if (connection === undefined) return Promise.resolve();
  const { socket } = connection;
  socket.end(); // undici destroys it at the site's FIN
  const timer = setTimeout(() => socket.destroy(), CLOSING_TIMEOUT_MS);
  return closed(socket).finally(() => clearTimeout(timer));
}

function cutOff(connection: Connection | undefined): Promise<void> {
  return connection === undefined ? Promise.resolve() : closed(connection.socket.destroy());
}

async function closed(socket: Socket): Promise<void> {
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
}
