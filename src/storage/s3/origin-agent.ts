import * as http from 'node:http';
import * as https from 'node:https';
import type { LookupFunction, Socket } from 'node:net';
import { MediaError } from '../../contract/errors.ts';

/** Bounds of the connections to one origin. */
export interface ConnectionLimits {
  /** Concurrent connections; further requests wait for one, and their wait counts as the origin's time. */
  readonly maxConnections: number;
  /** Longest time from the lookup of the name to the end of the TLS handshake, in milliseconds. */
  readonly connectTimeoutMs: number;
  /** Replaces the system's resolver; for tests. */
  readonly lookup?: LookupFunction;
}

/**
 * Time after which an unused connection is closed, in milliseconds: before the servers close it (AWS after some 20 s),
 * so that a request rarely meets a closing one, and before a firewall forgets it.
 */
const IDLE_TIMEOUT_MS = 15_000;

/**
 * Returns an agent with keep-alive, whose connections have a deadline to open; a late one fails its request with
 * MediaError `ORIGIN_TIMEOUT`.
 *
 * The SDK has a setting for this, but its time includes the wait for a free connection and omits the TLS handshake.
 */
export function createOriginAgent(
  protocol: 'http:' | 'https:',
  { maxConnections, connectTimeoutMs, lookup }: ConnectionLimits,
): http.Agent {
  const options = {
    keepAlive: true,
    maxSockets: maxConnections,
    timeout: IDLE_TIMEOUT_MS,
    ...(lookup && { lookup }),
  };
  const isTls = protocol === 'https:';
  const agent: http.Agent = isTls ? new https.Agent(options) : new http.Agent(options);
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (target, callback) => {
    const socket = connect(target, callback) as Socket;
    const timer = setTimeout(() => {
      const cause = new Error(`No connection within ${connectTimeoutMs} ms.`);
      socket.destroy(new MediaError('ORIGIN_TIMEOUT', { cause }));
    }, connectTimeoutMs);
    const settle = (): void => clearTimeout(timer);
    return socket.once(isTls ? 'secureConnect' : 'connect', settle).once('close', settle);
  };
  return agent;
}

/**
 * Ends a body with MediaError `ORIGIN_TIMEOUT` when none of it arrives for a time while its reader waits. A slow reader
 * is not affected.
 */
export function endWhenStalled(body: http.IncomingMessage, timeoutMs: number): void {
  const { socket } = body;
  const check = (): void => {
    if (body.complete) return;
    const cause = new Error(`Nothing of the body came for ${timeoutMs} ms.`);
    if (body.readableLength === 0) body.destroy(new MediaError('ORIGIN_TIMEOUT', { cause }));
    // The reader has not taken all bytes yet, so the reader is slow.
    else socket.setTimeout(timeoutMs);
  };
  socket.setTimeout(timeoutMs);
  socket.on('timeout', check);
  body.once('close', () => socket.off('timeout', check));
}
