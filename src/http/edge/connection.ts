import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Meter } from '../../pipeline/meter.ts';
import { countRefusal, type Refusal, RequestLineWatch, refusals, writeRefusal } from './refusal.ts';

/** Phase of a connection: no request yet; responses under way; waiting for the next request; our FIN is sent. */
export type Phase = 'new' | 'active' | 'idle' | 'closing';

/** The part of all connections that one of them needs. */
export interface ConnectionOwner {
  readonly meter: Meter;
  readonly isDraining: boolean;
  /** Requests whose response is not closed. */
  requestCount: number;
  move(connection: Connection, phase: Phase): void;
}

/** TCP connection, and the HTTP/1.1 over it. */
export class Connection {
  /** Socket below TLS. */
  readonly transport: Socket;
  phase: Phase = 'new';
  /** When it became idle or began to close, in milliseconds of the clock. */
  sinceMs = 0;
  /** Responses that are not closed yet, in the order of their requests. */
  readonly responses = new Set<ServerResponse>();
  readonly requestLines = new RequestLineWatch();
  readonly #owner: ConnectionOwner;
  /** Bytes that the client must take in a window not to count as stalled. */
  readonly #minBytes: number;
  /** Response that the client has yet to take `#minBytes` of, since when, and what it had taken by then. */
  #owed: { response: ServerResponse; sinceMs: number; takenBytes: number } | undefined;
  /** Socket that carries HTTP/1.1: the transport, or TLS above it. */
  #socket: Socket;
  #lastRequest: IncomingMessage | undefined;
  /** Whether it ends after the responses that are under way, and after `#finalResponse`, if any. */
  #isEnding = false;
  #finalResponse: Refusal | undefined;

  constructor(transport: Socket, owner: ConnectionOwner, minBytes: number) {
    this.transport = transport;
    this.#socket = transport;
    this.#owner = owner;
    this.#minBytes = minBytes;
    this.speakOver(transport);
  }

  /**
   * From now on HTTP is spoken over this socket, which lingers at its end: after the last response, Node closes a
   * connection even if the client still sends; then the system resets it, and the client may lose the response
   * (RFC 9112 §9.6).
   */
  speakOver(socket: Socket): void {
    this.#socket = socket;
    socket.destroySoon = () => {
      this.#isEnding = true;
      // What comes after a `Connection: close` gets no response.
      this.#finalResponse = undefined;
      if (this.phase !== 'closing') this.leave();
    };
  }

  /** Takes in a request; returns whether the connection is not at its end. */
  begin(request: IncomingMessage, response: ServerResponse): boolean {
    if (this.phase === 'closing' || this.transport.destroyed) return false;
    this.responses.add(response);
    this.#lastRequest = request;
    this.#owner.requestCount += 1;
    if (this.#owner.isDraining) response.shouldKeepAlive = false;
    if (this.phase !== 'active') this.#owner.move(this, 'active');
    response.on('close', () => {
      this.responses.delete(response);
      this.#owner.requestCount -= 1;
      this.#rest();
    });
    return true;
  }

  end(): void {
    this.#isEnding = true;
    if (this.responses.size === 0) this.leave();
  }

  /** Rejects a message that the parser could not read, and ends the connection. */
  refuse(refusal: Refusal): void {
    if (this.#isEnding) return; // the parser reports every chunk that follows
    countRefusal(this.#owner.meter, refusal);
    this.#isEnding = true;
    const [oldest] = this.responses;
    if (this.#lastRequest?.complete ?? true) {
      this.#finalResponse = refusal;
    } else if (this.responses.size === 1 && oldest?.headersSent === false) {
      // The fault is in the body of a request that has no response yet: the refusal is its response.
      this.#finalResponse = refusal;
      this.leave();
      return;
    }
    if (oldest === undefined) this.leave();
  }

  /** Rejects a CONNECT; Node's parser has detached itself from the socket. */
  refuseTunnel(): void {
    this.#socket.on('error', () => undefined);
    // Node cannot send responses that are under way any more.
    if (this.responses.size > 0) {
      this.#socket.destroy();
      return;
    }
    this.refuse(refusals.connect);
    this.#socket.resume();
  }

  /** Sends the final response, if any, and a FIN; the client has to close. */
  leave(): void {
    this.#owner.move(this, 'closing');
    if (this.#finalResponse !== undefined && this.#socket.writable) {
      writeRefusal(this.#socket, this.#finalResponse);
    }
    this.#socket.end();
  }

  /**
   * Returns for how long its client has taken nothing of a response; every sweep asks. Standstill is measured, not time:
   * a response that waits for the origin or a render is not late, and one of 500 MiB may take hours at a modest pace.
   */
  standstillMs(nowMs: number): number {
    const [response] = this.responses;
    if (response === undefined || !isUnderWay(response)) {
      this.#owed = undefined;
      return 0;
    }
    const takenBytes = this.#socket.bytesWritten - this.#socket.writableLength;
    const owed = this.#owed;
    if (owed?.response === response && takenBytes - owed.takenBytes < this.#minBytes) {
      return nowMs - owed.sinceMs;
    }
    this.#owed = { response, sinceMs: nowMs, takenBytes };
    return 0;
  }

  /** Closes pipelined responses after the connection has closed: Node closes only the first one. */
  closeWaiting(): void {
    for (const response of this.responses) {
      if (response.socket !== null) continue;
      response.destroy();
      response.emit('close');
    }
  }

  #rest(): void {
    if (this.responses.size > 0 || this.phase !== 'active') return;
    if (this.transport.destroyed) return;
    if (this.#isEnding || this.#owner.isDraining) this.leave();
    else this.#owner.move(this, 'idle');
  }
}

/** Whether bytes of a response, or its end, wait for the client. */
function isUnderWay(response: ServerResponse): boolean {
  return response.writableLength > 0 || response.writableEnded;
}
