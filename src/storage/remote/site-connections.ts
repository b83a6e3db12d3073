import { Client } from 'undici';
import { MediaError } from '../../contract/errors.ts';
import { Semaphore, type SemaphoreLimits } from '../../pipeline/semaphore.ts';
import { type ConnectorParts, createSiteConnector } from './site-connector.ts';

/** Bounds of the connections to other sites. */
export interface ConnectionBounds {
  /** Connections to one host at once, and requests that wait for one. */
  readonly perHost: SemaphoreLimits;
  /** The same for all hosts. */
  readonly inAll: SemaphoreLimits;
  /** How long a site may take to respond while others wait for a connection, in milliseconds. */
  readonly patienceMs: number;
  /** How long a connection may stand still in the middle of a body whose reader waits, in milliseconds. */
  readonly pauseMs: number;
}

/** One connection, for one request at a time. */
interface Connection {
  readonly client: Client;
  readonly origin: string;
  readonly host: string;
  /** Ends it while it is being opened. */
  readonly opening: AbortController;
}

/** A connection that a request may use. */
export interface ConnectionLease {
  readonly client: Client;
  /** Whether requests have used it before. */
  readonly wasKept: boolean;
  /** Aborts when the connection is needed more elsewhere, with MediaError `OVERLOADED`. */
  readonly signal: AbortSignal;
  /** The site has responded: the connection is not taken away any more. */
  noteResponse(): void;
  /** Gives it back, to be kept for the next request, or closed; a second call does nothing. */
  release(isReusable: boolean): void;
}

/** How long a connection without a request is kept, in milliseconds; most servers keep it for 5 s or more. */
const IDLE_TIMEOUT_MS = 4_000;

/** Bytes of a response's head, and of its trailers. */
const MAX_HEAD_BYTES = 32 * 1024;

/**
 * Connections to other sites: so many to a host and so many in all, those included that are kept for later. A
 * request waits for its host first, so that one host, however slow, never has more than its share of the whole.
 *
 * When all are taken and others wait, a site that has not begun to respond for a while loses its connection: a hundred
 * sites that hang hold up none of the rest.
 */
export class SiteConnections {
  readonly #bounds: ConnectionBounds;
  readonly #connector: ConnectorParts;
  readonly #all: Semaphore;
  readonly #hosts = new Map<string, Semaphore>();
  /** Open, or about to be; those without a request stand in `#idle`, the longest idle first. */
  readonly #open = new Set<Connection>();
  readonly #idle = new Set<Connection>();
  /** Requests whose sites have been silent for longer than is patient, the longest silent first. */
  readonly #silent = new Set<AbortController>();

  constructor(bounds: ConnectionBounds, connector: ConnectorParts) {
    this.#bounds = bounds;
    this.#connector = connector;
    this.#all = new Semaphore(bounds.inAll);
  }

  /** How many connections there are, idle ones too. */
  get size(): number {
    return this.#open.size;
  }

  /** How many requests have one, and how many wait for one behind requests to other hosts. */
  get inUse(): number {
    return this.#all.inside;
  }

  get waiting(): number {
    return this.#all.waiting;
  }

  /**
   * Waits for a connection to a site; it is opened with the first request.
   *
   * @param origin scheme, host and port, as `URL.origin` has them
   * @throws MediaError `OVERLOADED` if too many wait, or for too long; or `signal.reason`
   */
  async lease(origin: string, host: string, signal: AbortSignal): Promise<ConnectionLease> {
    const leaveHost = await this.#enterHost(host, signal);
    let leaveAll: (() => void) | undefined;
    const leave = (): void => {
      leaveAll?.();
      leaveHost();
    };
    try {
      const entering = this.#all.enter(signal);
      if (this.#all.waiting > 0) this.#interruptSilent();
      leaveAll = await entering;
      const kept = this.#takeIdle(origin);
      return this.#leaseOf(kept ?? this.#create(origin, host), kept !== undefined, leave);
    } catch (error) {
      leave();
      throw error;
    }
  }

  close(): void {
    for (const connection of [...this.#open]) this.#dispose(connection);
  }

  async #enterHost(host: string, signal: AbortSignal): Promise<() => void> {
    const semaphore = this.#hosts.get(host) ?? new Semaphore(this.#bounds.perHost);
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

  #leaseOf(connection: Connection, wasKept: boolean, leave: () => void): ConnectionLease {
    const interruption = new AbortController();
    let isHeld = true;
    const growSilent = (): void => {
      this.#silent.add(interruption);
      if (this.#all.waiting > 0) this.#interruptSilent();
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
        if (isReusable && isAlive) this.#idle.add(connection);
        else this.#dispose(connection);
        leave();
      },
    };
  }

  /** The request that has waited for its site the longest gives its connection up. */
  #interruptSilent(): void {
    const [longest] = this.#silent;
    if (longest === undefined) return;
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
    const { perHost, inAll, pauseMs } = this.#bounds;
    const ofHost = [...this.#open].filter((connection) => connection.host === host);
    if (ofHost.length >= perHost.slots) this.#disposeIdle((it) => it.host === host);
    if (this.#open.size >= inAll.slots) this.#disposeIdle(() => true);
    const opening = new AbortController();
    const client = new Client(origin, {
      connect: createSiteConnector(this.#connector, opening.signal),
      maxHeaderSize: MAX_HEAD_BYTES,
      // Its own deadlines come by whole seconds; that of the head is ours.
      headersTimeout: 0,
      bodyTimeout: pauseMs,
      keepAliveTimeout: IDLE_TIMEOUT_MS,
      keepAliveMaxTimeout: IDLE_TIMEOUT_MS,
      allowH2: false,
    });
    const connection = { client, origin, host, opening };
    this.#open.add(connection);
    client.on('disconnect', () => this.#dispose(connection));
    return connection;
  }

  #disposeIdle(fits: (connection: Connection) => boolean): void {
    const found = [...this.#idle].find(fits);
    if (found !== undefined) this.#dispose(found);
  }

  #dispose(connection: Connection): void {
    if (!this.#open.delete(connection)) return;
    this.#idle.delete(connection);
    connection.opening.abort();
    connection.client.destroy().catch(() => undefined);
  }
}
