import type { Socket } from 'node:net';
import type { Meter } from '../../pipeline/meter.ts';
import type { Clock, Log } from '../../pipeline/ports.ts';
import type { ConnectionCounters } from '../../telemetry/readiness.ts';
import type { ClientLimits } from './client-limits.ts';
import { Connection, type ConnectionOwner, type Phase } from './connection.ts';

const noCutOffs = { slowReaders: 0, evicted: 0, turnedAway: 0 };

interface ConnectionsOptions {
  readonly maxConnections: number;
  readonly limits: ClientLimits;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
}

/**
 * All connections of the listener: how many there may be, and how long each may do nothing. One sweep over
 * them instead of timers for each. What a client has to send in time, Node's parser watches by itself.
 */
export class Connections implements ConnectionOwner {
  readonly meter: Meter;
  readonly slowReaderMinBytes: number;
  isDraining = false;
  readonly #options: ConnectionsOptions;
  /** Each may have a file of the storage open, and there is one for every other connection. */
  readonly #maxRequests: number;
  /** By their phases, in each of them in the order in which they have come to it. */
  readonly #phases: Readonly<Record<Phase, Set<Connection>>> = {
    new: new Set(),
    active: new Set(),
    idle: new Set(),
    closing: new Set(),
  };
  /** By their sockets, as requests and errors name them. */
  readonly #bySocket = new WeakMap<Socket, Connection>();
  /** By the addresses of both ends: the one thing that a TLS socket has in common with the one below. */
  readonly #byEnds = new Map<string, Connection>();
  #requestCount = 0;
  /** Clients that were cut off: since the start, and since the log has last said so. */
  readonly #cutOffs = { ...noCutOffs };
  #newCutOffs = { ...noCutOffs };

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    this.meter = options.meter;
    this.slowReaderMinBytes = options.limits.slowReaderMinBytes;
    this.#maxRequests = Math.min(Math.ceil(options.maxConnections / 2), options.limits.maxRequests);
  }

  get isOverloaded(): boolean {
    return this.#requestCount > this.#maxRequests;
  }

  get counters(): ConnectionCounters {
    return {
      connections: this.#byEnds.size,
      maxConnections: this.#options.maxConnections,
      requests: this.#requestCount,
      maxRequests: this.#maxRequests,
      ...this.#cutOffs,
    };
  }

  /**
   * Takes in a connection. Where there are too many, the one goes that is likeliest not to be missed (as in
   * nginx): on its way out, then silent for the longest time, then idle. So idle connections alone can never
   * keep anyone out. If all are busy, the new one has to go.
   */
  accept(transport: Socket): void {
    transport.on('error', () => undefined); // a close follows
    const isGone = transport.remoteAddress === undefined;
    if (isGone || this.isDraining || !this.#makeRoom()) {
      transport.destroy();
      return;
    }
    const connection = new Connection(transport, this.#options.clock.nowMs(), this);
    const ends = endsOf(transport);
    this.#phases.new.add(connection);
    this.#byEnds.set(ends, connection);
    this.#bySocket.set(transport, connection);
    transport.once('close', () => {
      if (this.#byEnds.get(ends) === connection) this.#byEnds.delete(ends);
      this.#phases[connection.phase].delete(connection);
      connection.closeWaiting();
    });
  }

  /** The TLS handshake of a connection is done. */
  secure(socket: Socket): void {
    const connection = this.#byEnds.get(endsOf(socket));
    if (connection === undefined) return;
    this.#bySocket.set(socket, connection);
    connection.speakOver(socket);
  }

  find(socket: Socket): Connection | undefined {
    return this.#bySocket.get(socket);
  }

  move(connection: Connection, phase: Phase): void {
    this.#phases[connection.phase].delete(connection);
    connection.phase = phase;
    connection.sinceMs = this.#options.clock.nowMs();
    this.#phases[phase].add(connection);
  }

  countRequest(change: 1 | -1): void {
    this.#requestCount += change;
  }

  /** Closes what is not busy, and the rest as soon as it is not. */
  drain(): void {
    this.isDraining = true;
    for (const { transport } of this.#phases.new) transport.destroy();
    for (const connection of this.#phases.idle) connection.leave();
    for (const { responses } of this.#phases.active) {
      for (const { response } of responses) {
        if (!response.headersSent) response.shouldKeepAlive = false;
      }
    }
  }

  /** Closes what has lasted too long. */
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
    const isCrowded = this.#requestCount > 0.75 * this.#maxRequests;
    const windowMs = isCrowded ? limits.crowdedReaderWindowMs : limits.slowReaderWindowMs;
    for (const { transport, responses } of this.#phases.active) {
      for (const pace of responses) {
        if (pace.standstillMs(nowMs) < windowMs) continue;
        this.#countCutOff('slowReaders');
        // Not just closed: the system would keep what is in its buffers, and try to deliver it.
        transport.resetAndDestroy();
        break;
      }
    }
    this.#logCutOffs();
  }

  /** Makes sure that there may be one connection more; returns whether there may. */
  #makeRoom(): boolean {
    if (this.#byEnds.size < this.#options.maxConnections) return true;
    const { closing, new: fresh, idle } = this.#phases;
    const victim = oldestOf(closing) ?? oldestOf(fresh) ?? oldestOf(idle);
    this.#countCutOff(victim === undefined ? 'turnedAway' : 'evicted');
    victim?.transport.destroy();
    return victim !== undefined;
  }

  #countCutOff(kind: keyof typeof noCutOffs): void {
    this.#cutOffs[kind] += 1;
    this.#newCutOffs[kind] += 1;
  }

  #logCutOffs(): void {
    const news = this.#newCutOffs;
    if (news.slowReaders + news.evicted + news.turnedAway === 0) return;
    this.#newCutOffs = { ...noCutOffs };
    const details = { ...news, connections: this.#byEnds.size };
    this.#options.log.warn(details, 'clients were cut off or turned away');
  }
}

function oldestOf(connections: Set<Connection>): Connection | undefined {
  const [oldest] = connections;
  return oldest;
}

function endsOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}
