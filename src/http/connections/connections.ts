import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Meter } from '../../pipeline/meter.ts';
import type { Clock, Log } from '../../pipeline/ports.ts';
import { Connection, type ConnectionOwner, type Phase } from './connection.ts';

/**
 * Limits of one client. They are not settings, since they do not depend on the installation. The number of connections
 * does: see `MAX_CONNECTIONS`.
 */
export const clientLimits = {
  handshakeTimeoutMs: 10_000,
  /**
   * From the first byte of a request (for the first request: from the connection) to the end of its head, which fits
   * into a few packets: ten seconds allow three retransmissions of each (RFC 6298: after 1, 2 and 4 s).
   */
  headTimeoutMs: 10_000,
  /** From the head of a request to the end of its discarded body. Uploads have a minimum pace instead. */
  requestTimeoutMs: 20_000,
  /**
   * From a response to the next request of a connection. The proxy in front keeps idle connections for 60 s, and must
   * close one first: a request that it sends while we close the connection gets no response.
   */
  keepAliveTimeoutMs: 72_000,
  /**
   * From our FIN to the end of a connection that the client does not close. Closing over unread bytes resets the
   * connection, and the reset may overtake our response (RFC 9112 §9.6).
   */
  lingerTimeoutMs: 2_000,
  /** From the begin of a stop to our FIN on idle connections, over which a request may be on its way. */
  idleGraceMs: 250,
  /**
   * Window in which a client must read `slowReaderMinBytes` of its response, or the rest; as long as nginx's send_timeout.
   * A shorter one would hit honest clients: the system accepts bytes once a third of its buffer (up to 4 MiB) is free, so
   * on loopback a client of 20 kB/s read nothing for 58 s, and then 1.4 MB at once.
   */
  slowReaderWindowMs: 60_000,
  /** At least 1 KiB/s, against clients that read a byte a second. */
  slowReaderMinBytes: 65_536,
  /** The window while three quarters of `maxRequests` are under way and others are about to be rejected. */
  crowdedReaderWindowMs: 10_000,
  sweepIntervalMs: 1_000,

  /**
   * The request line and all header fields; Node's own limit. The longest URL of a stored original has 900 bytes, the
   * longest opaque URL of external media 11 kB; browsers send 1 to 4 kB of fields.
   */
  maxHeadBytes: 16_384,
  /** The same for uploads: a capability has up to 16 384 characters (contract §10). */
  maxUploadHeadBytes: 24_576,
  maxHeaderFields: 100,
  /** Bytes of a body that the contract does not provide for, which the listener reads and discards. */
  maxBodyBytes: 1_048_576,
  /**
   * Requests whose response is not complete; at most half of the connections. A response that its client does not read
   * takes 0.3 to 0.5 MB of memory.
   */
  maxRequests: 2_048,
  /** The same for one connection. Few clients pipeline at all. */
  maxPipelinedRequests: 32,
};

const DRAIN_STEP_MS = 10;

export type ClientLimits = Readonly<typeof clientLimits>;

/**
 * All connections of the listener: their number, and how long each may be inactive. One sweep replaces timers for each.
 * Node's parser bounds the time in which a client sends a head.
 */
export class Connections implements ConnectionOwner {
  readonly meter: Meter;
  isDraining = false;
  requestCount = 0;
  #isClosed = false;
  readonly #maxConnections: number;
  readonly #limits: ClientLimits;
  readonly #clock: Clock;
  readonly #log: Log;
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
  /** Connections by the addresses of both ends, the only identity that a TLS socket shares with the socket below. */
  readonly #byAddresses = new Map<string, Connection>();
  /** Clients disconnected since the start, and how many of them are logged. */
  readonly #cutOffs = { slowReaders: 0, evicted: 0, turnedAway: 0 };
  #logged = { ...this.#cutOffs };

  constructor(maxConnections: number, limits: ClientLimits, clock: Clock, log: Log, meter: Meter) {
    this.#maxConnections = maxConnections;
    this.#limits = limits;
    this.#clock = clock;
    this.#log = log;
    this.meter = meter;
    this.#maxRequests = Math.min(Math.ceil(maxConnections / 2), limits.maxRequests);
  }

  get isOverloaded(): boolean {
    return this.requestCount > this.#maxRequests;
  }

  get counters() {
    return {
      connections: this.#byAddresses.size,
      maxConnections: this.#maxConnections,
      requests: this.requestCount,
      maxRequests: this.#maxRequests,
      ...this.#cutOffs,
    };
  }

  /**
   * Accepts a connection. At the maximum it first evicts one, as nginx does: the oldest that is closing, has sent no
   * request, or is idle, in this order. If all are active, it rejects the new one.
   */
  accept(transport: Socket): void {
    transport.on('error', () => undefined); // a close follows
    const hasLeft = transport.remoteAddress === undefined;
    if (hasLeft || this.#isClosed || !this.#makeRoom()) {
      transport.destroy();
      return;
    }
    const connection = new Connection(transport, this, this.#limits.slowReaderMinBytes);
    const addresses = addressPairOf(transport);
    this.#phases.new.add(connection);
    this.#byAddresses.set(addresses, connection);
    this.#bySocket.set(transport, connection);
    transport.once('close', () => {
      if (this.#byAddresses.get(addresses) === connection) this.#byAddresses.delete(addresses);
      this.#phases[connection.phase].delete(connection);
      connection.closeWaiting();
    });
  }

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
    if (phase !== 'active') connection.sinceMs = this.#clock.nowMs();
    this.#phases[phase].add(connection);
  }

  /** Closes active connections after their responses, and the others after a grace period for requests on their way. */
  async drain(): Promise<void> {
    this.isDraining = true;
    const { new: fresh, idle, active } = this.#phases;
    for (const { responses } of active) {
      for (const response of responses) {
        if (!response.headersSent) response.shouldKeepAlive = false;
      }
    }
    const endMs = performance.now() + this.#limits.idleGraceMs;
    while (fresh.size + idle.size > 0 && performance.now() < endMs) await sleep(DRAIN_STEP_MS);
    this.#isClosed = true;
    for (const { transport } of fresh) transport.destroy();
    for (const connection of idle) connection.leave();
  }

  sweep(): void {
    const { keepAliveTimeoutMs, lingerTimeoutMs, ...limits } = this.#limits;
    const nowMs = this.#clock.nowMs();
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
      // A reset: after a plain close, the system would keep its buffers and try to deliver them.
      connection.transport.resetAndDestroy();
    }
    this.#logCutOffs();
  }

  /** Returns whether another connection is possible; may evict one. */
  #makeRoom(): boolean {
    if (this.#byAddresses.size < this.#maxConnections) return true;
    const { closing, new: fresh, idle } = this.#phases;
    const [victim] = [closing, fresh, idle].flatMap(([oldest]) => oldest ?? []);
    this.#cutOffs[victim === undefined ? 'turnedAway' : 'evicted'] += 1;
    victim?.transport.destroy();
    return victim !== undefined;
  }

  #logCutOffs(): void {
    const { slowReaders, evicted, turnedAway } = this.#cutOffs;
    const added = {
      slowReaders: slowReaders - this.#logged.slowReaders,
      evicted: evicted - this.#logged.evicted,
      turnedAway: turnedAway - this.#logged.turnedAway,
    };
    if (added.slowReaders + added.evicted + added.turnedAway === 0) return;
    this.#logged = { slowReaders, evicted, turnedAway };
    const details = { ...added, connections: this.#byAddresses.size };
    this.#log.warn(details, 'clients were disconnected or rejected');
  }
}

function addressPairOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}
