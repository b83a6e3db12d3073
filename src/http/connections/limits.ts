import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Meter } from '../../pipeline/meter.ts';
import type { Clock, Log } from '../../pipeline/ports.ts';
import type { ConnectionCounters } from '../../telemetry/readiness.ts';
import { Connection, type ConnectionOwner, type Phase } from './connection.ts';

/**
 * Limits of one client, in time, bytes and numbers. They are not settings: they do not depend on who runs the service.
 * The number of connections does, and is `MAX_CONNECTIONS`.
 */
export const clientLimits = {
  /** From a connection to the end of its TLS handshake. */
  handshakeTimeoutMs: 10_000,
  /**
   * From the first byte of a request (for the first request: from the connection) to the end of its head, which fits
   * into a few packets: ten seconds are three retransmissions of each (RFC 6298: after 1, 2 and 4 s).
   */
  headTimeoutMs: 10_000,
  /** From the head of a request to the end of its body, which is discarded; an upload has a pace instead. */
  requestTimeoutMs: 20_000,
  /**
   * From a response to the next request of a connection. The proxy in front keeps idle connections for 60 s, and must
   * be the first to close one: a request that it sends while we close the connection gets no response.
   */
  keepAliveTimeoutMs: 72_000,
  /**
   * From our FIN to the end of a connection that the client does not close, for bytes that the client still sends. To
   * close a connection over unread bytes resets it, and the reset may overtake our response (RFC 9112 §9.6).
   */
  lingerTimeoutMs: 2_000,
  /** From the begin of a stop to our FIN on idle connections: a request may be on its way over one of them. */
  idleGraceMs: 250,
  /**
   * In each such window a client must take `slowReaderMinBytes` of its response, or the rest of it. nginx's send_timeout
   * is as long. A shorter window would cut off honest clients: the system accepts further bytes when a third of its
   * buffer (4 MiB at most) is free, so on loopback a client of 20 kB/s took nothing for 58 s, and then 1.4 MB at once.
   */
  slowReaderWindowMs: 60_000,
  /** At least 1 KiB/s, against clients that take a byte a second. */
  slowReaderMinBytes: 65_536,
  /** The same window while three quarters of `maxRequests` are under way and others are about to be rejected. */
  crowdedReaderWindowMs: 10_000,
  sweepIntervalMs: 1_000,

  /**
   * The request line and all header fields. The longest URL of a stored original has some 900 bytes, the longest opaque
   * URL of external media 11 kB; browsers send 1 to 4 kB of fields. Node's own limit.
   */
  maxHeadBytes: 16_384,
  /** The same for uploads: a capability has up to 16 384 characters (contract §10). */
  maxUploadHeadBytes: 24_576,
  maxHeaderFields: 100,
  /** Bytes of a body where the contract has none; the listener reads and discards it. */
  maxBodyBytes: 1_048_576,
  /**
   * Requests whose response is not complete; half of the connections, if that is less. A response that its client does
   * not read holds 0.3 to 0.5 MB here.
   */
  maxRequests: 2_048,
  /** The same of one connection. Few clients pipeline at all. */
  maxPipelinedRequests: 32,
};

/** Interval between two checks whether all connections of a stop are closed, in milliseconds. */
const DRAIN_STEP_MS = 10;

/** Limits of clients; tests shorten some. */
export type ClientLimits = Readonly<typeof clientLimits>;

/** Settings and observers of connections. */
export interface ConnectionsOptions {
  readonly maxConnections: number;
  readonly limits: ClientLimits;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
}

/**
 * All connections of the listener: their number, and how long each may do nothing. One sweep replaces timers for each.
 * Node's parser watches what a client has to send in time.
 */
export class Connections implements ConnectionOwner {
  readonly meter: Meter;
  isDraining = false;
  requestCount = 0;
  #isClosed = false;
  readonly #options: ConnectionsOptions;
  /** Each request may have a file of the storage open, and each other connection one of its own. */
  readonly #maxRequests: number;
  /** Connections by phase, in the order in which they entered it. */
  readonly #phases: Readonly<Record<Phase, Set<Connection>>> = {
    new: new Set(),
    active: new Set(),
    idle: new Set(),
    closing: new Set(),
  };
  readonly #bySocket = new WeakMap<Socket, Connection>();
  /** Connections by the addresses of both ends, the one thing that a TLS socket shares with the socket below. */
  readonly #byAddresses = new Map<string, Connection>();
  /** Clients that were cut off since the start, and how many of them the log has. */
  readonly #cutOffs = { slowReaders: 0, evicted: 0, turnedAway: 0 };
  #logged = { ...this.#cutOffs };

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    this.meter = options.meter;
    this.#maxRequests = Math.min(Math.ceil(options.maxConnections / 2), options.limits.maxRequests);
  }

  get isOverloaded(): boolean {
    return this.requestCount > this.#maxRequests;
  }

  get counters(): ConnectionCounters {
    return {
      connections: this.#byAddresses.size,
      maxConnections: this.#options.maxConnections,
      requests: this.requestCount,
      maxRequests: this.#maxRequests,
      ...this.#cutOffs,
    };
  }

  /**
   * Takes in a connection. At the bound it evicts, as nginx does, the connection that is least likely to be missed:
   * closing, then without a request for the longest time, then idle. So idle connections never keep anyone out. If all
   * are active, it rejects the new one.
   */
  accept(transport: Socket): void {
    transport.on('error', () => undefined); // a close follows
    const isGone = transport.remoteAddress === undefined;
    if (isGone || this.#isClosed || !this.#makeRoom()) {
      transport.destroy();
      return;
    }
    const connection = new Connection(transport, this, this.#options.limits.slowReaderMinBytes);
    const ends = addressPairOf(transport);
    this.#phases.new.add(connection);
    this.#byAddresses.set(ends, connection);
    this.#bySocket.set(transport, connection);
    transport.once('close', () => {
      if (this.#byAddresses.get(ends) === connection) this.#byAddresses.delete(ends);
      this.#phases[connection.phase].delete(connection);
      connection.closeWaiting();
    });
  }

  /** Lets a connection whose TLS handshake is done speak over TLS. */
  secure(socket: Socket): void {
    const connection = this.#byAddresses.get(addressPairOf(socket));
    if (connection === undefined) return;
    this.#bySocket.set(socket, connection);
    connection.attachHttp(socket);
  }

  find(socket: Socket): Connection | undefined {
    return this.#bySocket.get(socket);
  }

  move(connection: Connection, phase: Phase): void {
    this.#phases[connection.phase].delete(connection);
    connection.phase = phase;
    if (phase !== 'active') connection.sinceMs = this.#options.clock.nowMs();
    this.#phases[phase].add(connection);
  }

  /** Closes active connections after their responses, and the others after a moment in which a request is still served. */
  async drain(): Promise<void> {
    this.isDraining = true;
    const { new: fresh, idle, active } = this.#phases;
    for (const { responses } of active) {
      for (const response of responses) {
        if (!response.headersSent) response.shouldKeepAlive = false;
      }
    }
    const endMs = performance.now() + this.#options.limits.idleGraceMs;
    while (fresh.size + idle.size > 0 && performance.now() < endMs) await sleep(DRAIN_STEP_MS);
    this.#isClosed = true;
    for (const { transport } of fresh) transport.destroy();
    for (const connection of idle) connection.leave();
  }

  /** Closes connections that were idle, closing or stalled for too long. */
  sweep(): void {
    const { keepAliveTimeoutMs, lingerTimeoutMs, ...limits } = this.#options.limits;
    const nowMs = this.#options.clock.nowMs();
    for (const connection of this.#phases.idle) {
      if (nowMs - connection.sinceMs < keepAliveTimeoutMs) break;
      connection.leave();
    }
    for (const { transport, sinceMs } of this.#phases.closing) {
      if (nowMs - sinceMs < lingerTimeoutMs) break;
      transport.destroy();
    }
    const isCrowded = this.requestCount > 0.75 * this.#maxRequests;
    const windowMs = isCrowded ? limits.crowdedReaderWindowMs : limits.slowReaderWindowMs;
    for (const connection of this.#phases.active) {
      if (connection.stalledForMs(nowMs) < windowMs) continue;
      this.#cutOffs.slowReaders += 1;
      // Not just closed: the system would keep what is in its buffers, and try to deliver it.
      connection.transport.resetAndDestroy();
    }
    this.#logCutOffs();
  }

  /** Returns whether there may be one connection more, for which it evicts another one. */
  #makeRoom(): boolean {
    if (this.#byAddresses.size < this.#options.maxConnections) return true;
    const { closing, new: fresh, idle } = this.#phases;
    const [victim] = [closing, fresh, idle].flatMap(([oldest]) => oldest ?? []);
    this.#cutOffs[victim === undefined ? 'turnedAway' : 'evicted'] += 1;
    victim?.transport.destroy();
    return victim !== undefined;
  }

  #logCutOffs(): void {
    const { slowReaders, evicted, turnedAway } = this.#cutOffs;
    const news = {
      slowReaders: slowReaders - this.#logged.slowReaders,
      evicted: evicted - this.#logged.evicted,
      turnedAway: turnedAway - this.#logged.turnedAway,
    };
    if (news.slowReaders + news.evicted + news.turnedAway === 0) return;
    this.#logged = { slowReaders, evicted, turnedAway };
    const details = { ...news, connections: this.#byAddresses.size };
    this.#options.log.warn(details, 'clients were disconnected or rejected');
  }
}

function addressPairOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}
