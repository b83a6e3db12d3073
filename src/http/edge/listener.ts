import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Meter } from '../../pipeline/meter.ts';
import type { Clock, Log } from '../../pipeline/ports.ts';
import type { ConnectionCounters } from '../../telemetry/readiness.ts';
import type { ClientLimits } from './client-limits.ts';
import type { Connection } from './connection.ts';
import { Connections } from './connections.ts';
import { findFormFault } from './message-form.ts';
import {
  countRefusal,
  type FindMethods,
  hasBody,
  type ParserError,
  refusalOf,
  refusals,
  sendRefusal,
} from './refusal.ts';

/** Parts and settings of a listener. */
export interface ListenerOptions {
  /** Certificate and key in PEM; with them the listener speaks TLS 1.2 and newer. */
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  /** Most connections; at most half as many requests are served at a time. */
  readonly maxConnections: number;
  readonly limits: ClientLimits;
  readonly findMethods: FindMethods;
  /** Whether the body of a request is for its handler, however long it is; `undefined`: none is. */
  readonly isUpload: ((request: IncomingMessage) => boolean) | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
}

/** Handles a request that the listener has checked. */
type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** The server as Node knows it, with its connections watched over. */
export interface Listener {
  readonly server: Server | TlsServer;
  /** Takes leave of all clients, once their responses are out. */
  readonly drain: () => void;
  /** Returns the counters of the connections. */
  readonly countConnections: () => ConnectionCounters;
}

/**
 * Creates the listener of HTTP/1.1: plain, or with TLS. It stands between the service and slow, hostile or too
 * many clients, and hands over well-formed requests, no more at a time than there may be.
 */
export function createListener(options: ListenerOptions, handle: RequestHandler): Listener {
  const { limits, meter, tls, isUpload } = options;
  const uploadLimits = { ...limits, maxHeadBytes: limits.maxUploadHeadBytes };
  const settings = parserSettings(isUpload === undefined ? limits : uploadLimits);
  const connections = new Connections(options);
  const server =
    tls === undefined
      ? createServer(settings)
      : createTlsServer({
          ...tls,
          ...settings,
          minVersion: 'TLSv1.2',
          handshakeTimeout: limits.handshakeTimeoutMs,
        });
  server.maxHeadersCount = 0; // counted by ourselves: Node drops what is too much

  /** Hands a request over, if it is well-formed and not one too many. */
  const admit = (request: IncomingMessage, response: ServerResponse): void => {
    const connection = connections.find(request.socket);
    if (connection === undefined || !connection.begin(request, response)) {
      request.destroy();
      return;
    }
    // Each holds its request and a place among all; no well-meaning client comes near.
    if (connection.responses.size > limits.maxPipelinedRequests) {
      connection.transport.destroy();
      return;
    }
    // No upgrade is offered here, but the parser reads nothing after a request for one.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
    const isWithBody = hasBody(request);
    const isForHandler = isUpload?.(request) === true;
    if (isWithBody && !isForHandler) discardBody(request, connection, limits);
    const refusal =
      findFormFault(request, isForHandler ? uploadLimits : limits, connection.requestLines) ??
      (connections.isOverloaded ? refusals.overloaded : undefined);
    if (refusal !== undefined) {
      countRefusal(meter, refusal);
      sendRefusal(request, response, refusal);
    } else if (isWithBody) {
      // By then the parser has read what came along: a body that is no HTTP is refused, not responded to.
      queueMicrotask(() => handle(request, response));
    } else {
      handle(request, response);
    }
  };

  server.on('connection', (transport: Socket) => connections.accept(transport));
  server.on('secureConnection', (socket: Socket) => connections.secure(socket));
  server.on('request', admit);
  // The response itself meets any expectation (RFC 9110 §10.1.1). A body that is not read need not be asked
  // for, and Node would write its 100 into the middle of a pipelined response.
  server.on('checkContinue', admit);
  server.on('checkExpectation', admit);
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    const connection = connections.find(socket);
    if (connection === undefined) socket.destroy();
    else connection.refuseTunnel();
  });
  server.on('clientError', (error: ParserError, socket: Socket) => {
    const connection = connections.find(socket);
    const refusal = refusalOf(error, options.findMethods);
    if (connection === undefined || refusal === undefined) socket.destroy();
    else connection.refuse(refusal);
  });
  server.once('listening', () => {
    const sweep = setInterval(() => connections.sweep(), limits.sweepIntervalMs).unref();
    server.once('close', () => clearInterval(sweep));
  });
  return {
    server,
    drain: () => connections.drain(),
    countConnections: () => connections.counters,
  };
}

function parserSettings(limits: ClientLimits) {
  return {
    headersTimeout: limits.headTimeoutMs,
    // Of bodies, `discardBody` has it: an upload may take as long as it likes.
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: limits.sweepIntervalMs,
    maxHeaderSize: limits.maxHeadBytes,
    // Checked by ourselves, to be refused in our own words.
    requireHostHeader: false,
  };
}

/** Reads a body over, so that the next request is found, but not one without end, nor for ever. */
function discardBody(
  request: IncomingMessage,
  connection: Connection,
  { maxBodyBytes, requestTimeoutMs }: ClientLimits,
): void {
  let receivedBytes = 0;
  request.on('data', (chunk: Buffer) => {
    receivedBytes += chunk.length;
    if (receivedBytes <= maxBodyBytes) return;
    request.pause();
    connection.end();
  });
  const timer = setTimeout(() => connection.refuse(refusals.timeout), requestTimeoutMs);
  const settle = (): void => clearTimeout(timer);
  request.once('end', settle).once('close', settle);
}
