import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, type Http2ServerResponse, type ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { ReaderPace } from './reader-pace.ts';
import { type Refusal, writeRefusal } from './refusal.ts';

/**
 * What a connection is about: it has asked nothing yet; answers are under way; it was answered and waits
 * for its next request; all is said, and the client has to close.
 */
export type Phase = 'silent' | 'busy' | 'idle' | 'leaving';

/** An answer, from its request until it is closed. */
export interface Exchange {
  readonly response: ServerResponse;
  readonly pace: ReaderPace;
  /** Its stream was reset, of HTTP/2. */
  isReset: boolean;
}

/** One connection of TCP, and what is spoken over it. */
export class Connection {
  /** Below TLS. */
  readonly transport: Socket;
  /** What HTTP/1.1 is spoken over: the same, or TLS. */
  socket: Socket;
  /** HTTP/2, if it is that. */
  session: ServerHttp2Session | undefined;
  phase: Phase = 'silent';
  /** Since when it is in that phase, in milliseconds of the clock. */
  sinceMs: number;
  /** In the order of the requests. */
  readonly exchanges = new Set<Exchange>();
  lastRequest: IncomingMessage | undefined;
  /** Whether it ends with the answers that are under way; then with these words, if there are any. */
  isEnding = false;
  lastWords: Refusal | undefined;

  constructor(transport: Socket, sinceMs: number) {
    this.transport = transport;
    this.socket = transport;
    this.sinceMs = sinceMs;
  }

  /** Says the last words; the client has to close. */
  takeLeave(): void {
    const { session, socket, lastWords } = this;
    if (session !== undefined) {
      session.close();
      return;
    }
    if (lastWords !== undefined && socket.writable) writeRefusal(socket, lastWords);
    socket.end();
  }

  /** Lets go of an answer: of HTTP/2 the stream alone, at first; the connection if that does not help. */
  cutOff(exchange: Exchange): void {
    if (this.session === undefined || exchange.isReset) {
      // Not just closed: the system would keep what is in its buffers, and try to deliver it.
      this.transport.resetAndDestroy();
      return;
    }
    exchange.isReset = true;
    const { stream } = exchange.response as unknown as Http2ServerResponse;
    stream.close(constants.NGHTTP2_CANCEL);
  }

  /** To be called when it has closed: Node closes no answer that was waiting for the one before it. */
  closeWaiting(): void {
    for (const { response } of this.exchanges) {
      if (response.socket !== null) continue;
      response.destroy();
      response.emit('close');
    }
  }
}
