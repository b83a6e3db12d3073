import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { ReaderPace } from './reader-pace.ts';
import { type Refusal, writeRefusal } from './refusal.ts';

/**
 * What a connection is about: it has asked for nothing yet; responses are under way; it had its response
 * and waits for its next request; all is said, and the client has to close.
 */
export type Phase = 'silent' | 'busy' | 'idle' | 'leaving';

/** One connection of TCP, and the HTTP/1.1 that is spoken over it. */
export class Connection {
  /** Below TLS. */
  readonly transport: Socket;
  /** What HTTP/1.1 is spoken over: the same, or TLS. */
  socket: Socket;
  phase: Phase = 'silent';
  /** Since when it is in that phase, in milliseconds of the clock. */
  sinceMs: number;
  /** Responses that are not closed yet, in the order of their requests. */
  readonly responses = new Set<ReaderPace>();
  lastRequest: IncomingMessage | undefined;
  /** Whether it ends with the responses that are under way; then with `lastWords`, if there are any. */
  isEnding = false;
  lastWords: Refusal | undefined;

  constructor(transport: Socket, sinceMs: number) {
    this.transport = transport;
    this.socket = transport;
    this.sinceMs = sinceMs;
  }

  /** Sends the last words; the client has to close. */
  takeLeave(): void {
    const { socket, lastWords } = this;
    if (lastWords !== undefined && socket.writable) writeRefusal(socket, lastWords);
    socket.end();
  }

  /** To be called when it has closed: Node closes no response that was waiting for the one before it. */
  closeWaiting(): void {
    for (const { response } of this.responses) {
      if (response.socket !== null) continue;
      response.destroy();
      response.emit('close');
    }
  }
}
