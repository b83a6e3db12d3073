import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Meter } from '../../pipeline/meter.ts';
import { countRefusal, type Refusal, refusals, writeRefusal } from './refusal.ts';

/** Phase of a connection: before its first request; with pending responses; between requests; after our FIN. */
export type Phase = 'new' | 'active' | 'idle' | 'closing';

/** Subset of `Connections` that a connection uses. */
export interface ConnectionOwner {
  readonly meter: Meter;
  readonly isDraining: boolean;
  requestCount: number;
  move(connection: Connection, phase: Phase): void;
}

export class Connection {
  readonly transport: Socket;
  phase: Phase = 'new';
  /** Start of the phases `idle` and `closing`, in milliseconds of the clock. */
  sinceMs = 0;
  /** Open responses, in the order of their requests. */
  readonly responses = new Set<ServerResponse>();
  readonly #owner: ConnectionOwner;
  /** Minimum number of bytes that a client must read in each window. */
  readonly #minBytes: number;
  /** Oldest response, and the number of bytes read by the client at the start of the current window. */
  #progress: { response: ServerResponse; sinceMs: number; readBytes: number } | undefined;
  /** Socket that carries HTTP/1.1: the transport, or TLS above it. */
  #socket: Socket;
  #lastRequest: IncomingMessage | undefined;
  #isEnding = false;
  #finalResponse: Refusal | undefined;

  constructor(transport: Socket, owner: ConnectionOwner, minBytes: number) {
    this.transport = transport;
    this.#socket = transport;
    this.#owner = owner;
    this.#minBytes = minBytes;
    this.attachHttp(transport);
  }

  /**
   * Attaches the socket that carries HTTP, and makes it linger at its end. Node would close it while the client still
   * sends, and the reset may overtake the last response (RFC 9112 §9.6).
   */
  attachHttp(socket: Socket): void {
    this.#socket = socket;
    socket.destroySoon = () => {
      this.#isEnding = true;
      // No response to a message after `Connection: close`.
      this.#finalResponse = undefined;
      if (this.phase !== 'closing') this.leave();
    };
  }

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
      this.#onResponseClosed();
    });
    return true;
  }

  end(): void {
    this.#isEnding = true;
    if (this.responses.size === 0) this.leave();
  }

  /** Rejects a malformed message after the pending responses, and ends the connection. */
  refuse(refusal: Refusal): void {
    if (this.#isEnding) return; // the parser reports all further chunks
    countRefusal(this.#owner.meter, refusal);
    this.#isEnding = true;
    const [oldest] = this.responses;
    const isOwnBody = this.#lastRequest?.complete === false;
    // The refusal of an invalid body is the response to its request, unless that response has begun.
    const isResponse = this.responses.size === 1 && oldest?.headersSent === false;
    if (!isOwnBody || isResponse) this.#finalResponse = refusal;
    if (oldest === undefined || (isOwnBody && isResponse)) this.leave();
  }

  /** Rejects a CONNECT. Node's parser is detached by then, and does not send pending responses. */
  refuseTunnel(): void {
    this.#socket.on('error', () => undefined);
    if (this.responses.size > 0) this.#socket.destroy();
    else this.refuse(refusals.connect);
    this.#socket.resume();
  }

  leave(): void {
    this.#owner.move(this, 'closing');
    if (this.#finalResponse !== undefined && this.#socket.writable) {
      writeRefusal(this.#socket, this.#finalResponse);
    }
    this.#socket.end();
  }

  /** Returns the time since the client last read `#minBytes` of a response; 0 while the origin or a render is pending. */
  stalledForMs(nowMs: number): number {
    const [response] = this.responses;
    if (response === undefined || !isUnderWay(response)) {
      this.#progress = undefined;
      return 0;
    }
    const readBytes = this.#socket.bytesWritten - this.#socket.writableLength;
    const progress = this.#progress;
    if (progress?.response === response && readBytes - progress.readBytes < this.#minBytes) {
      return nowMs - progress.sinceMs;
    }
    this.#progress = { response, sinceMs: nowMs, readBytes };
    return 0;
  }

  /** Closes pipelined responses of a closed connection, of which Node closes only the first one. */
  closePipelined(): void {
    for (const response of this.responses) {
      if (response.socket !== null) continue;
      response.destroy();
      response.emit('close');
    }
  }

  #onResponseClosed(): void {
    if (this.responses.size > 0 || this.phase !== 'active') return;
    if (this.transport.destroyed) return;
    if (this.#isEnding || this.#owner.isDraining) this.leave();
    else this.#owner.move(this, 'idle');
  }
}

/** Whether the client has yet to read bytes or the end of a response. */
function isUnderWay(response: ServerResponse): boolean {
  return response.writableLength > 0 || response.writableEnded;
}
