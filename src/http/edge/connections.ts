import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ResponseMeter } from '../../pipeline/meter.ts';
import type { Clock, Log } from '../../pipeline/ports.ts';
import type { ConnectionCounters } from '../../telemetry/connection-counters.ts';
import type { ClientLimits } from './client-limits.ts';
import { Connection, type Phase } from './connection.ts';
import { ReaderPace } from './reader-pace.ts';
import { countRefusal, type Refusal, refusals } from './refusal.ts';

interface ConnectionsOptions {
  readonly maxConnections: number;
  readonly limits: ClientLimits;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: ResponseMeter;
}

/**
 * All connections of the listener: how many there may be, and how long each may do nothing. One sweep over
 * them instead of timers for each. What a client has to send in time, Node's parser watches by itself.
 */
export class Connections {
  readonly #options: ConnectionsOptions;
  /** Each may have a file of the storage open, and there is one for every other connection. */
  readonly #maxRequests: number;
  /** By their phases, in each of them in the order in which they have come to it. */
  readonly #phases: Readonly<Record<Phase, Set<Connection>>> = {
    silent: new Set(),
    busy: new Set(),
    idle: new Set(),
    leaving: new Set(),
  };
  /** By their sockets, as requests and errors name them. */
  readonly #owners = new WeakMap<Socket, Connection>();
  /** By the addresses of both ends: the one thing that a TLS socket has in common with the one below. */
  readonly #ends = new Map<string, Connection>();
  #requestCount = 0;
  #isDraining = false;
  /** Clients that were cut off: since the start, and as far as the log has told of it. */
  readonly #cutOffs = { slowReaders: 0, evicted: 0, turnedAway: 0 };
  #loggedCutOffs = { ...this.#cutOffs };

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    this.#maxRequests = Math.min(Math.ceil(options.maxConnections / 2), options.limits.maxRequests);
  }

  /** Whether more requests are under way than may be. */
  get isOverloaded(): boolean {
    return this.#requestCount > this.#maxRequests;
  }

  /** What goes on here, at this moment. */
  get counters(): ConnectionCounters {
    return {
      connections: this.#ends.size,
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
    if (isGone || this.#isDraining || !this.#makeRoom()) {
      transport.destroy();
      return;
    }
    const connection = new Connection(transport, this.#options.clock.nowMs());
    const ends = endsOf(transport);
    this.#phases.silent.add(connection);
    this.#ends.set(ends, connection);
    this.#own(connection, transport);
    transport.once('close', () => {
      if (this.#ends.get(ends) === connection) this.#ends.delete(ends);
      this.#phases[connection.phase].delete(connection);
      connection.closeWaiting();
    });
  }

  /** The TLS handshake of a connection is done. */
  secure(socket: Socket): void {
    const connection = this.#ends.get(endsOf(socket));
    if (connection === undefined) return;
    connection.socket = socket;
    this.#own(connection, socket);
  }

  /** The connection that a socket belongs to. */
  find(socket: Socket): Connection | undefined {
    return this.#owners.get(socket);
  }

  /** A request has come; tells whether it came in time, and not over a connection that is at its end. */
  begin(connection: Connection, request: IncomingMessage, response: ServerResponse): boolean {
    if (connection.phase === 'leaving' || connection.transport.destroyed) return false;
    const pace = new ReaderPace(response, this.#options.limits.slowReaderMinBytes);
    connection.responses.add(pace);
    connection.lastRequest = request;
    this.#requestCount += 1;
    if (connection.phase !== 'busy') this.#move(connection, 'busy');
    response.on('close', () => {
      connection.responses.delete(pace);
      this.#requestCount -= 1;
      this.#rest(connection);
    });
    return true;
  }

  /** Ends a connection after the responses that are under way. */
  end(connection: Connection): void {
    connection.isEnding = true;
    if (connection.responses.size === 0) this.#leave(connection);
  }

  /** Refuses what the parser could not read. The connection is of no use any more. */
  refuse(connection: Connection, refusal: Refusal): void {
    if (connection.isEnding) return; // the parser complains of every byte that follows
    countRefusal(this.#options.meter, refusal);
    connection.isEnding = true;
    const [oldest] = connection.responses;
    if (connection.lastRequest?.complete ?? true) {
      connection.lastWords = refusal;
    } else if (connection.responses.size === 1 && oldest?.response.headersSent === false) {
      // The body of a request that has no response yet: this is it.
      connection.lastWords = refusal;
      this.#leave(connection);
      return;
    }
    if (oldest === undefined) this.#leave(connection);
  }

  /** Refuses a CONNECT, whose socket Node's parser has let go. */
  refuseTunnel(socket: Socket): void {
    const connection = this.find(socket);
    socket.on('error', () => undefined);
    // Responses that were under way there can be sent by nothing any more.
    if (connection?.responses.size !== 0) {
      socket.destroy();
      return;
    }
    countRefusal(this.#options.meter, refusals.connect);
    connection.isEnding = true;
    connection.lastWords = refusals.connect;
    socket.resume();
    this.#leave(connection);
  }

  /** Closes what is not busy, and the rest as soon as it is not. */
  drain(): void {
    this.#isDraining = true;
    for (const { transport } of this.#phases.silent) transport.destroy();
    for (const connection of this.#phases.idle) this.#leave(connection);
    for (const { responses } of this.#phases.busy) {
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
      this.#leave(connection);
    }
    for (const { transport, sinceMs } of this.#phases.leaving) {
      if (nowMs - sinceMs < lingerTimeoutMs) break;
      transport.destroy();
    }
    const isCrowded = this.#requestCount > 0.75 * this.#maxRequests;
    const windowMs = isCrowded ? limits.crowdedReaderWindowMs : limits.slowReaderWindowMs;
    for (const { transport, responses } of this.#phases.busy) {
      for (const pace of responses) {
        if (pace.standstillMs(nowMs) < windowMs) continue;
        this.#cutOffs.slowReaders += 1;
        // Not just closed: the system would keep what is in its buffers, and try to deliver it.
        transport.resetAndDestroy();
        break;
      }
    }
    this.#logCutOffs();
  }

  #logCutOffs(): void {
    const { slowReaders, evicted, turnedAway } = this.#loggedCutOffs;
    const news = {
      slowReaders: this.#cutOffs.slowReaders - slowReaders,
      evicted: this.#cutOffs.evicted - evicted,
      turnedAway: this.#cutOffs.turnedAway - turnedAway,
    };
    if (news.slowReaders + news.evicted + news.turnedAway === 0) return;
    this.#loggedCutOffs = { ...this.#cutOffs };
    const details = { ...news, connections: this.#ends.size };
    this.#options.log.warn(details, 'clients were cut off or turned away');
  }

  #makeRoom(): boolean {
    if (this.#ends.size < this.#options.maxConnections) return true;
    for (const phase of ['leaving', 'silent', 'idle'] as const) {
      const [oldest] = this.#phases[phase];
      if (oldest === undefined) continue;
      this.#cutOffs.evicted += 1;
      oldest.transport.destroy();
      return true;
    }
    this.#cutOffs.turnedAway += 1;
    return false;
  }

  /**
   * Notes whose a socket is, and lets it linger at its end: after the last response, Node closes a connection
   * whether the client has sent all or not; and from a client that still sends, the system then takes the
   * response back, if it was not read yet (RFC 9112 §9.6).
   */
  #own(connection: Connection, socket: Socket): void {
    this.#owners.set(socket, connection);
    socket.destroySoon = () => {
      connection.isEnding = true;
      // All is said; what comes after a `Connection: close` gets no response.
      connection.lastWords = undefined;
      if (connection.phase !== 'leaving') this.#leave(connection);
    };
  }

  /** What becomes of a connection when one of its responses is closed. */
  #rest(connection: Connection): void {
    if (connection.responses.size > 0 || connection.phase !== 'busy') return;
    if (connection.transport.destroyed) return; // forgotten already, or about to be
    if (connection.isEnding || this.#isDraining) this.#leave(connection);
    else this.#move(connection, 'idle');
  }

  #leave(connection: Connection): void {
    this.#move(connection, 'leaving');
    connection.takeLeave();
  }

  #move(connection: Connection, phase: Phase): void {
    this.#phases[connection.phase].delete(connection);
    connection.phase = phase;
    connection.sinceMs = this.#options.clock.nowMs();
    this.#phases[phase].add(connection);
  }
}

function endsOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}
