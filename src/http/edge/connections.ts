import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { ResponseMeter } from '../../pipeline/meter.ts';
import type { Clock, Log } from '../../pipeline/ports.ts';
import type { ConnectionCounters } from '../../telemetry/connection-counters.ts';
import type { ClientLimits } from './client-limits.ts';
import { Connection, type Exchange } from './connection.ts';
import { ConnectionPhases } from './connection-phases.ts';
import { CutOffTally } from './cut-off-tally.ts';
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
 * them instead of timers for each. What HTTP/1.1 has to send in time, Node's parser watches by itself.
 */
export class Connections {
  readonly #options: ConnectionsOptions;
  /** Each may have a file of the storage open, and there is one for every other connection. */
  readonly #maxExchanges: number;
  readonly #phases: ConnectionPhases;
  /** By their sockets and sessions, as requests and errors name them. */
  readonly #owners = new WeakMap<object, Connection>();
  /** By the addresses of both ends: the one thing that a TLS socket has in common with the one below. */
  readonly #ends = new Map<string, Connection>();
  #exchangeCount = 0;
  #isDraining = false;
  readonly #tally = new CutOffTally();

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    const { maxConnections, limits, clock } = options;
    this.#phases = new ConnectionPhases(clock);
    this.#maxExchanges = Math.min(Math.ceil(maxConnections / 2), limits.maxRequests);
  }

  /** Whether more requests are under way than may be. */
  get isOverloaded(): boolean {
    return this.#exchangeCount > this.#maxExchanges;
  }

  /** How many connections there are. */
  get size(): number {
    return this.#ends.size;
  }

  /** What goes on here, at this moment. */
  get door(): ConnectionCounters {
    return {
      connections: this.size,
      maxConnections: this.#options.maxConnections,
      requests: this.#exchangeCount,
      maxRequests: this.#maxExchanges,
      ...this.#tally.sinceStart,
    };
  }

  /**
   * Takes in a connection. Where there are too many, the one goes that is likeliest to be missed by nobody
   * (as in nginx): on its way out, then silent for the longest time, then idle. Idle connections alone can
   * so never keep anybody out. If all are busy, the new one has to go.
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
    this.#phases.add(connection);
    this.#owners.set(transport, connection);
    this.#ends.set(ends, connection);
    this.#lingerAtEnd(connection);
    transport.once('close', () => {
      if (this.#ends.get(ends) === connection) this.#ends.delete(ends);
      this.#phases.remove(connection);
      connection.closeWaiting();
    });
  }

  /** HTTP/1.1 over TLS: the handshake is done. */
  secure(socket: Socket): void {
    const connection = this.#ends.get(endsOf(socket));
    if (connection === undefined) return;
    connection.socket = socket;
    this.#owners.set(socket, connection);
    this.#lingerAtEnd(connection);
  }

  /** The same of HTTP/2. */
  open(session: ServerHttp2Session): void {
    const connection = this.#ends.get(endsOf(session.socket));
    if (connection === undefined) return;
    connection.session = session;
    this.#owners.set(session, connection);
  }

  /** @param owner a socket or a session */
  find(owner: object | undefined): Connection | undefined {
    return owner && this.#owners.get(owner);
  }

  /** A request has come; tells whether it came in time, and not over a connection that is at its end. */
  begin(connection: Connection, request: IncomingMessage, response: ServerResponse): boolean {
    if (connection.phase === 'leaving' || connection.transport.destroyed) return false;
    const pace = new ReaderPace(response, this.#options.limits.slowReaderMinBytes);
    const exchange: Exchange = { response, pace, isReset: false };
    connection.exchanges.add(exchange);
    connection.lastRequest = request;
    this.#exchangeCount += 1;
    if (connection.phase !== 'busy') this.#phases.move(connection, 'busy');
    response.once('close', () => this.#finish(connection, exchange));
    return true;
  }

  /** Ends a connection, of HTTP/1.1, after the answers that are under way. */
  end(connection: Connection): void {
    connection.isEnding = true;
    if (connection.exchanges.size === 0) this.#leave(connection);
  }

  /** Refuses what the parser of HTTP/1.1 could not read. The connection is of no use any more. */
  refuse(connection: Connection, refusal: Refusal): void {
    if (connection.isEnding) return; // the parser complains of every byte that follows
    countRefusal(this.#options.meter, refusal);
    connection.isEnding = true;
    const [oldest] = connection.exchanges;
    if (connection.lastRequest?.complete ?? true) {
      connection.lastWords = refusal;
    } else if (connection.exchanges.size === 1 && oldest?.response.headersSent === false) {
      // The body of a request that has no answer yet: this is it.
      connection.lastWords = refusal;
      this.#leave(connection);
      return;
    }
    if (oldest === undefined) this.#leave(connection);
  }

  /** Refuses a CONNECT of HTTP/1.1, whose socket Node's parser has let go. */
  refuseTunnel(socket: Socket): void {
    const connection = this.find(socket);
    socket.on('error', () => undefined);
    // Answers that were under way there have nobody to send them.
    if (connection?.exchanges.size !== 0) {
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
    for (const { transport } of this.#phases.in('silent')) transport.destroy();
    for (const connection of this.#phases.in('idle')) this.#leave(connection);
    for (const { session, exchanges } of this.#phases.in('busy')) {
      session?.close(); // after its streams; it says so (RFC 9113 §6.8)
      for (const { response } of exchanges) {
        if (session === undefined && !response.headersSent) response.shouldKeepAlive = false;
      }
    }
  }

  /** Closes what has lasted too long. */
  sweep(): void {
    const { limits, clock, log } = this.#options;
    const nowMs = clock.nowMs();
    for (const { transport } of this.#phases.olderThan('silent', nowMs - limits.silenceTimeoutMs)) {
      transport.destroy();
    }
    for (const connection of this.#phases.olderThan('idle', nowMs - limits.keepAliveTimeoutMs)) {
      this.#leave(connection);
    }
    for (const { transport } of this.#phases.olderThan('leaving', nowMs - limits.lingerTimeoutMs)) {
      transport.destroy();
    }
    const isCrowded = this.#exchangeCount > 0.75 * this.#maxExchanges;
    const windowMs = isCrowded ? limits.crowdedReaderWindowMs : limits.slowReaderWindowMs;
    for (const connection of this.#phases.in('busy')) {
      for (const exchange of connection.exchanges) {
        if (exchange.pace.standstillMs(nowMs) < windowMs) continue;
        this.#tally.note('slowReaders');
        connection.cutOff(exchange);
      }
    }
    const counts = this.#tally.takeSinceLast();
    if (counts !== undefined) {
      log.warn({ ...counts, connections: this.size }, 'clients were cut off or turned away');
    }
  }

  #makeRoom(): boolean {
    if (this.size < this.#options.maxConnections) return true;
    for (const phase of ['leaving', 'silent', 'idle'] as const) {
      const [oldest] = this.#phases.in(phase);
      if (oldest === undefined) continue;
      this.#tally.note('evicted');
      oldest.transport.destroy();
      return true;
    }
    this.#tally.note('turnedAway');
    return false;
  }

  #finish(connection: Connection, exchange: Exchange): void {
    connection.exchanges.delete(exchange);
    this.#exchangeCount -= 1;
    if (connection.exchanges.size > 0 || connection.phase !== 'busy') return;
    if (connection.transport.destroyed) return; // forgotten already, or about to be
    if (connection.isEnding || this.#isDraining) this.#leave(connection);
    else this.#phases.move(connection, 'idle');
  }

  /**
   * After the last answer, Node closes a connection whether the client has sent all or not; and from a client
   * that still sends, the system then takes the answer back, if it was not read yet (RFC 9112 §9.6).
   */
  #lingerAtEnd(connection: Connection): void {
    connection.socket.destroySoon = () => {
      connection.isEnding = true;
      // All is said; what comes after a `Connection: close` has no answer.
      connection.lastWords = undefined;
      if (connection.phase !== 'leaving') this.#leave(connection);
    };
  }

  #leave(connection: Connection): void {
    this.#phases.move(connection, 'leaving');
    connection.takeLeave();
  }
}

function endsOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}
