import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Meter } from '../../pipeline/meter.ts';
import type { Clock, Log } from '../../pipeline/ports.ts';
import { Connection, type ConnectionOwner, type Phase } from './connection.ts';

/** Limits of one client. They do not depend on the installation, so they are not settings, unlike `MAX_CONNECTIONS`. */
export const clientLimits = {
  handshakeTimeoutMs: 10_000,
  /**
   * From the connection, or the first byte of a later request, to the end of its head. A head has a few packets; ten
   * seconds allow three retransmissions of each (RFC 6298: after 1, 2 and 4 s).
   */
  headTimeoutMs: 10_000,
  /** From the head of a request to the end of its discarded body. Uploads have a minimum rate instead. */
  requestTimeoutMs: 20_000,
  /**
   * From a response to the next request of a connection. Longer than the 60 s of the proxy in front: a request that it
   * sends while the service closes the connection gets no response.
   */
  keepAliveTimeoutMs: 72_000,
  /**
   * From the FIN of the service to the end of a connection that the client does not close. Closing it with unread bytes
   * sends a reset, which may overtake the response (RFC 9112 §9.6).
   */
  lingerTimeoutMs: 2_000,
  /** From the beginning of a stop to the FIN on idle connections, for requests in transit. */
  idleGraceMs: 250,
  /**
   * Window in which a client must read `slowReaderMinBytes` of its response, or the rest; equals nginx's send_timeout. The
   * kernel accepts bytes once a third of its buffer (up to 4 MiB) is free: a client of 20 kB/s appeared idle for 58 s.
   */
  slowReaderWindowMs: 60_000,
  /** 1 KiB/s, against clients that read a byte a second. */
  slowReaderMinBytes: 65_536,
  /** The window while three quarters of `maxRequests` are running, before further requests are rejected. */
  crowdedReaderWindowMs: 10_000,
  sweepIntervalMs: 1_000,

  /**
   * The request line and all header fields; Node's default. URLs of stored originals have up to 900 bytes, opaque URLs of
   * external media up to 11 kB; browsers send 1 to 4 kB of fields.
   */
  maxHeadBytes: 16_384,
  /** The same for uploads: a capability has up to 16 384 characters (contract §10). */
  maxUploadHeadBytes: 24_576,
  maxHeaderFields: 100,
  /** Maximum size of a body that the listener discards. */
  maxBodyBytes: 1_048_576,
  /** Concurrent requests, at most half of the connections. A response that its client does not read takes 0.3 to 0.5 MB. */
  maxRequests: 2_048,
  /** The same for one connection. Few clients use pipelining. */
  maxPipelinedRequests: 32,
};

const DRAIN_STEP_MS = 10;

export type ClientLimits = Readonly<typeof clientLimits>;

/** All connections of the listener. Limits their number and idle time; Node's parser limits the time for a head. */
export class Connections implements ConnectionOwner {
  readonly meter: Meter;
  isDraining = false;
  requestCount = 0;
  #isClosed = false;
  readonly #maxConnections: number;
  readonly #limits: ClientLimits;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #maxRequests: number;
  /** Connections by phase, oldest first. */
  readonly #phases: Readonly<Record<Phase, Set<Connection>>> = {
    new: new Set(),
    active: new Set(),
    idle: new Set(),
    closing: new Set(),
  };
  readonly #bySocket = new WeakMap<Socket, Connection>();
  /** Connections by the addresses of both ends, the only identity that a TLS socket shares with its transport. */
  readonly #byAddresses = new Map<string, Connection>();
  /** Clients disconnected or rejected since the start. */
  readonly #disconnects = { slowReaders: 0, evicted: 0, turnedAway: 0 };
  #logged = { ...this.#disconnects };

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
      ...this.#disconnects,
    };
  }

  /**
   * Accepts a connection. At the maximum, evicts the oldest one that is closing, new or idle, in this order, as nginx does;
   * if all are active, rejects the new one.
   */
  accept(transport: Socket): void {
    transport.on('error', () => undefined); // a close follows
    const isDisconnected = transport.remoteAddress === undefined;
    if (isDisconnected || this.#isClosed || !this.#makeRoom()) {
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
      connection.closePipelined();
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

  /** Closes active connections after their responses, and others after a grace period for requests in transit. */
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
      this.#disconnects.slowReaders += 1;
      // Resets: after a close, the kernel would buffer the response and try to deliver it.
      connection.transport.resetAndDestroy();
    }
    this.#logDisconnects();
  }

  /** Whether another connection is possible; evicts one if necessary. */
  #makeRoom(): boolean {
    if (this.#byAddresses.size < this.#maxConnections) return true;
    const { closing, new: fresh, idle } = this.#phases;
    const [victim] = [closing, fresh, idle].flatMap(([oldest]) => oldest ?? []);
    this.#disconnects[victim === undefined ? 'turnedAway' : 'evicted'] += 1;
    victim?.transport.destroy();
    return victim !== undefined;
  }

  #logDisconnects(): void {
    const { slowReaders, evicted, turnedAway } = this.#disconnects;
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
