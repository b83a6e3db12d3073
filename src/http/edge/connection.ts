import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Meter } from '../../pipeline/meter.ts';
import { RequestLineWatch } from './message-form.ts';
import { ReaderPace } from './pace.ts';
import { countRefusal, type Refusal, refusals, writeRefusal } from './refusal.ts';

/**
 * Phase of a connection: it has asked for nothing yet; responses are under way; it had its response
 * and waits for its next request; all is said, and the client has to close.
 */
export type Phase = 'new' | 'active' | 'idle' | 'closing';

/** The part of all connections that one of them needs. */
export interface ConnectionOwner {
  readonly meter: Meter;
  /** Bytes that a client must take of a response not to count as stalled. */
  readonly slowReaderMinBytes: number;
  /** Whether no connection is to be used again. */
  readonly isDraining: boolean;
  move(connection: Connection, phase: Phase): void;
  /** A request has begun (1), or its response is closed (-1). */
  countRequest(change: 1 | -1): void;
}

/** One connection of TCP, and the HTTP/1.1 that is spoken over it. */
export class Connection {
  /** Below TLS. */
  readonly transport: Socket;
  phase: Phase = 'new';
  /** Since when it is in that phase, in milliseconds of the clock. */
  sinceMs: number;
  /** Responses that are not closed yet, in the order of their requests. */
  readonly responses = new Set<ReaderPace>();
  readonly requestLines = new RequestLineWatch();
  readonly #owner: ConnectionOwner;
  /** Socket that carries HTTP/1.1: the transport, or TLS above it. */
  #socket: Socket;
  #lastRequest: IncomingMessage | undefined;
  /** Whether it ends with the responses that are under way; then with `#finalResponse`, if there is one. */
  #isEnding = false;
  #finalResponse: Refusal | undefined;

  constructor(transport: Socket, sinceMs: number, owner: ConnectionOwner) {
    this.transport = transport;
    this.#socket = transport;
    this.sinceMs = sinceMs;
    this.#owner = owner;
    this.speakOver(transport);
  }

  /**
   * From now on HTTP is spoken over this socket, which lingers at its end: after the last response, Node closes a
   * connection whether the client has sent all or not; and from a client that still sends, the system then takes
   * the response back, if it was not read yet (RFC 9112 §9.6).
   */
  speakOver(socket: Socket): void {
    this.#socket = socket;
    socket.destroySoon = () => {
      this.#isEnding = true;
      // All is said; what comes after a `Connection: close` gets no response.
      this.#finalResponse = undefined;
      if (this.phase !== 'closing') this.leave();
    };
  }

  /** A request has come. Returns whether it came in time, and not over a connection that is at its end. */
  begin(request: IncomingMessage, response: ServerResponse): boolean {
    if (this.phase === 'closing' || this.transport.destroyed) return false;
    const pace = new ReaderPace(response, this.#owner.slowReaderMinBytes);
    this.responses.add(pace);
    this.#lastRequest = request;
    this.#owner.countRequest(1);
    if (this.phase !== 'active') this.#owner.move(this, 'active');
    response.on('close', () => {
      this.responses.delete(pace);
      this.#owner.countRequest(-1);
      this.#rest();
    });
    return true;
  }

  /** Ends it after the responses that are under way. */
  end(): void {
    this.#isEnding = true;
    if (this.responses.size === 0) this.leave();
  }

  /** Refuses what the parser could not read. The connection is of no use any more. */
  refuse(refusal: Refusal): void {
    if (this.#isEnding) return; // the parser complains of every byte that follows
    countRefusal(this.#owner.meter, refusal);
    this.#isEnding = true;
    const [oldest] = this.responses;
    if (this.#lastRequest?.complete ?? true) {
      this.#finalResponse = refusal;
    } else if (this.responses.size === 1 && oldest?.response.headersSent === false) {
      // The body of a request that has no response yet: this is it.
      this.#finalResponse = refusal;
      this.leave();
      return;
    }
    if (oldest === undefined) this.leave();
  }

  /** Refuses a CONNECT; Node's parser has let the socket go. */
  refuseTunnel(): void {
    this.#socket.on('error', () => undefined);
    // Responses that were under way there can be sent by nothing any more.
    if (this.responses.size > 0) {
      this.#socket.destroy();
      return;
    }
    this.refuse(refusals.connect);
    this.#socket.resume();
  }

  /** Sends the final response, if any; the client has to close. */
  leave(): void {
    this.#owner.move(this, 'closing');
    if (this.#finalResponse !== undefined && this.#socket.writable) {
      writeRefusal(this.#socket, this.#finalResponse);
    }
    this.#socket.end();
  }

  /** To be called when it has closed: Node closes no response that was waiting for the one before it. */
  closeWaiting(): void {
    for (const { response } of this.responses) {
      if (response.socket !== null) continue;
      response.destroy();
      response.emit('close');
    }
  }

  /** Moves the connection on when one of its responses is closed. */
  #rest(): void {
    if (this.responses.size > 0 || this.phase !== 'active') return;
    if (this.transport.destroyed) return; // forgotten already, or about to be
    if (this.#isEnding || this.#owner.isDraining) this.leave();
    else this.#owner.move(this, 'idle');
  }
}
