import * as http from 'node:http';
import * as https from 'node:https';
import type { LookupFunction, Socket } from 'node:net';
import { MediaError } from '../../contract/errors.ts';

/** Bounds of the connections to one origin. */
export interface ConnectionLimits {
  /** Open at the same time; requests beyond wait for one, and their waiting counts as the origin's. */
  readonly maxConnections: number;
  /** From the name's lookup to the end of the TLS handshake, in milliseconds. */
  readonly connectTimeoutMs: number;
  /** Instead of the system's resolver; for tests. */
  readonly lookup?: LookupFunction;
}

/**
 * Time after which an unused connection is closed, in milliseconds: before the servers do it (AWS
 * after some 20 s), so that a request seldom meets one that is closing, and before a firewall forgets it.
 */
const IDLE_TIMEOUT_MS = 15_000;

/**
 * Keeps connections to an origin alive and opens each of them within a deadline; one that is late
 * fails its request with MediaError `ORIGIN_TIMEOUT`.
 *
 * The SDK has a setting for this, but its time includes the wait for a free connection and leaves out
 * the TLS handshake.
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
      const cause = new Error(`There was no connection within ${connectTimeoutMs} ms.`);
      socket.destroy(new MediaError('ORIGIN_TIMEOUT', { cause }));
    }, connectTimeoutMs);
    const settle = (): void => clearTimeout(timer);
    return socket.once(isTls ? 'secureConnect' : 'connect', settle).once('close', settle);
  };
  return agent;
}

/**
 * Ends a body with MediaError `ORIGIN_TIMEOUT` when nothing of it comes for a time though its reader
 * waits. A reader that takes its time is left alone.
 */
export function endWhenStalled(body: http.IncomingMessage, timeoutMs: number): void {
  const { socket } = body;
  const check = (): void => {
    if (body.complete) return;
    const cause = new Error(`Nothing of the body came for ${timeoutMs} ms.`);
    if (body.readableLength === 0) body.destroy(new MediaError('ORIGIN_TIMEOUT', { cause }));
    // There are bytes that the reader has not taken yet: it is the slow one.
    else socket.setTimeout(timeoutMs);
  };
  socket.setTimeout(timeoutMs);
  socket.on('timeout', check);
  body.once('close', () => socket.off('timeout', check));
}
