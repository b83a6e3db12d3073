import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'undici';
import { MediaError } from '../../contract/errors.ts';
import { Semaphore, type SemaphoreLimits } from '../../pipeline/semaphore.ts';
import { type ConnectorParts, createSiteConnector } from './site-connector.ts';

/** Bounds of the connections to other sites. */
export interface ConnectionBounds {
  /** Concurrent connections to one host, and requests that wait for one. */
  readonly perHost: SemaphoreLimits;
  /** The same for all hosts. */
  readonly inAll: SemaphoreLimits;
  /** Longest time for a site to respond while others wait for a connection, in milliseconds. */
  readonly patienceMs: number;
}

/** One connection, for one request at a time. */
interface Connection {
  readonly client: Client;
  readonly origin: string;
  readonly host: string;
  /** Aborts the connection while it is being opened. */
  readonly opening: AbortController;
  /** Resolves when the site has noticed the end; `undefined` until the connection is being closed. */
  closed?: Promise<void>;
}

/** A connection that a request may use. */
export interface ConnectionLease {
  readonly client: Client;
  /** Whether earlier requests have used the connection. */
  readonly wasKept: boolean;
  /** Aborts with MediaError `OVERLOADED` when others need the connection more. */
  readonly signal: AbortSignal;
  /** Notes that the site has responded: the connection is no longer taken away. */
  noteResponse(): void;
  /** Releases the connection, which is kept for the next request, or closed; a second call does nothing. */
  release(isReusable: boolean): void;
}

/** Keep-alive time of a connection, in milliseconds; most servers keep it for 5 s or more. */
const IDLE_TIMEOUT_MS = 4_000;

/**
 * Time for a site to notice the end of a connection, in milliseconds. Without this delay, a server on this machine
 * counts one connection too many (measured).
 */
const CLOSING_MS = 20;

/** Most bytes of a response's head, and of its trailers. */
const MAX_HEAD_BYTES = 32 * 1024;

/**
 * Connections to other sites, bounded per host and in all, kept-alive ones included. A request waits for its host
 * first, so that a slow host never gets more than its share of the whole. A closed connection counts until its site has
 * noticed.
 *
 * When all are in use and requests wait, a site that has been silent for a while loses its connection: a hundred
 * hanging sites do not delay the others.
 */
export class SiteConnections {
  readonly #bounds: ConnectionBounds;
  readonly #connector: ConnectorParts;
  readonly #all: Semaphore;
  readonly #hosts = new Map<string, Semaphore>();
  /** Open connections, and those being opened; those without a request are in `#idle`, the longest idle first. */
  readonly #open = new Set<Connection>();
  readonly #idle = new Set<Connection>();
  /** Connections that are being closed, each of which makes room for one waiting request. */
  #closing = 0;
  /** Requests whose sites have been silent for longer than `patienceMs`, the longest silent first. */
  readonly #silent = new Set<AbortController>();

  constructor(bounds: ConnectionBounds, connector: ConnectorParts) {
    this.#bounds = bounds;
    this.#connector = connector;
    this.#all = new Semaphore(bounds.inAll);
  }

  /** Number of connections, idle ones included. */
  get size(): number {
    return this.#open.size;
  }

  /** Number of requests with a connection. */
  get inUse(): number {
    return this.#all.inside;
  }

  get waiting(): number {
    return this.#all.waiting;
  }

  /**
   * Waits for a connection to a site; the first request opens it.
   *
   * @param origin scheme, host and port, as in `URL.origin`
   * @throws MediaError `OVERLOADED` if too many wait, or for too long; or `signal.reason`
   */
  async lease(origin: string, host: string, signal: AbortSignal): Promise<ConnectionLease> {
    const releaseHost = await this.#enterHost(host, signal);
    let releaseAll: (() => void) | undefined;
    const release = (): void => {
      releaseAll?.();
      releaseHost();
    };
    try {
      const entering = this.#all.enter(signal);
      this.#interruptSilent();
      releaseAll = await entering;
      const kept = this.#takeIdle(origin);
      if (kept === undefined) await this.#makeRoom(host);
      return this.#leaseOf(kept ?? this.#create(origin, host), kept !== undefined, release);
    } catch (error) {
      release();
      throw error;
    }
  }

  close(): void {
    for (const connection of [...this.#open]) void this.#dispose(connection);
  }

  async #enterHost(host: string, signal: AbortSignal): Promise<() => void> {
    const semaphore = this.#hosts.get(host) ?? new Semaphore(this.#bounds.perHost);
    this.#hosts.set(host, semaphore);
    const forget = (): void => {
      const isUnused = semaphore.inside === 0 && semaphore.waiting === 0;
      if (isUnused && this.#hosts.get(host) === semaphore) this.#hosts.delete(host);
    };
    try {
      const release = await semaphore.enter(signal);
      return () => {
        release();
        forget();
      };
    } catch (error) {
      forget();
      throw error;
    }
  }

  #leaseOf(connection: Connection, wasKept: boolean, releaseSlots: () => void): ConnectionLease {
    const interruption = new AbortController();
    let isHeld = true;
    const growSilent = (): void => {
      this.#silent.add(interruption);
      this.#interruptSilent();
    };
    const timer = setTimeout(growSilent, this.#bounds.patienceMs);
    const noteResponse = (): void => {
      clearTimeout(timer);
      this.#silent.delete(interruption);
    };
    return {
      client: connection.client,
      wasKept,
      signal: interruption.signal,
      noteResponse,
      release: (isReusable) => {
        if (!isHeld) return;
        isHeld = false;
        noteResponse();
        const isAlive = this.#open.has(connection);
        if (isReusable && isAlive) {
          this.#idle.add(connection);
          releaseSlots();
          return;
        }
        this.#closing += 1;
        void this.#dispose(connection).then(() => {
          this.#closing -= 1;
          releaseSlots();
        });
      },
    };
  }

  /** Interrupts the request whose site has been silent for longest, if others need its connection. */
  #interruptSilent(): void {
    const [longest] = this.#silent;
    if (longest === undefined || this.#all.waiting <= this.#closing) return;
    this.#silent.delete(longest);
    const cause = new Error('The site was silent while others waited for a connection.');
    longest.abort(
      new MediaError('OVERLOADED', { cause, bottleneck: 'origin', retryAfterSeconds: 1 }),
    );
  }

  #takeIdle(origin: string): Connection | undefined {
    const found = [...this.#idle].findLast((connection) => connection.origin === origin);
    if (found !== undefined) this.#idle.delete(found);
    return found;
  }

  #create(origin: string, host: string): Connection {
    const opening = new AbortController();
    const client = new Client(origin, {
      connect: createSiteConnector(this.#connector, opening.signal),
      maxHeaderSize: MAX_HEAD_BYTES,
      // undici's own deadlines have a resolution of seconds; the head's is ours, a body's comes with its request.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_TIMEOUT_MS,
      keepAliveMaxTimeout: IDLE_TIMEOUT_MS,
      allowH2: false,
    });
    const connection: Connection = { client, origin, host, opening };
    this.#open.add(connection);
    client.on('disconnect', () => this.#dispose(connection));
    return connection;
  }

  /** Closes a kept connection if a further one would exceed the bound of the host, or of all. */
  async #makeRoom(host: string): Promise<void> {
    const { perHost, inAll } = this.#bounds;
    const idleOfHost = [...this.#idle].filter((connection) => connection.host === host);
    const inUseOfHost = this.#hosts.get(host)?.inside ?? 0;
    if (inUseOfHost + idleOfHost.length > perHost.slots) await this.#disposeFirst(idleOfHost);
    else if (this.inUse + this.#idle.size > inAll.slots) await this.#disposeFirst(this.#idle);
  }

  async #disposeFirst([first]: Iterable<Connection>): Promise<void> {
    if (first !== undefined) await this.#dispose(first);
  }

  /** Closes a connection; resolves when its site has noticed. */
  #dispose(connection: Connection): Promise<void> {
    this.#open.delete(connection);
    this.#idle.delete(connection);
    connection.opening.abort();
    const { client } = connection;
    connection.closed ??= client
      .destroy()
      .catch(() => undefined)
      .then(() => sleep(CLOSING_MS));
    return connection.closed;
  }
}
