import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createSecureServer, Http2ServerRequest, type ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { ResponseMeter } from '../../pipeline/meter.ts';
import type { Clock, Log } from '../../pipeline/ports.ts';
import type { ConnectionCounters } from '../../telemetry/connection-counters.ts';
import type { ClientLimits } from './client-limits.ts';
import { Connections } from './connections.ts';
import {
  countRefusal,
  type ParserError,
  type Refusal,
  refusalOf,
  refusals,
  sendRefusal,
} from './refusal.ts';
import { findFormFault } from './request-guard.ts';

export interface ListenerOptions {
  /** Certificate and key in PEM; with them the listener speaks TLS 1.2 and newer, and HTTP/2. */
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  /** How many connections there may be; and half as many requests at a time, at most. */
  readonly maxConnections: number;
  readonly limits: ClientLimits;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: ResponseMeter;
}

/** Handles a request that was let in. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** The server as Node knows it, with the door in front of it. */
export interface Listener {
  readonly server: Server;
  /** Takes leave of all clients, once their answers are out. */
  readonly drain: () => void;
  /** What goes on at the door, at this moment. */
  readonly countConnections: () => ConnectionCounters;
}

/**
 * Creates the listener: plain, or with TLS. It stands between the service and slow, hostile or too many
 * clients; whom it lets in has sent a request of good form, and has room for its answer.
 */
export function createListener(options: ListenerOptions, handle: RequestHandler): Listener {
  const { limits, meter } = options;
  const connections = new Connections(options);
  const server = options.tls === undefined ? createPlain(limits) : createTls(options.tls, limits);

  const refuse = (request: IncomingMessage, response: ServerResponse, refusal: Refusal): void => {
    countRefusal(meter, refusal);
    sendRefusal(request, response, refusal);
  };

  /** Lets a request in, as far as its form and the room there is allow. */
  const admit = (serve: RequestHandler) => (request: IncomingMessage, response: ServerResponse) => {
    const connection = connections.find(ownerOf(request));
    if (connection === undefined || !connections.begin(connection, request, response)) {
      request.destroy();
      return;
    }
    if (connection.session === undefined) {
      // Each holds its request and a place among all; nobody who means well comes near.
      if (connection.exchanges.size > limits.maxPipelinedRequests) {
        connection.transport.destroy();
        return;
      }
      // Nobody upgrades to what is offered here, but the parser reads nothing after such a request.
      if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
      discardBody(request, limits.maxBodyBytes, () => connections.end(connection));
    }
    const fault = findFormFault(request, connection.session !== undefined, limits);
    if (fault !== undefined) refuse(request, response, fault);
    else if (connections.isOverloaded) refuse(request, response, refusals.overloaded);
    else serve(request, response);
  };

  server.on('connection', (transport: Socket) => connections.accept(transport));
  server.on('secureConnection', (socket: TLSSocket) => {
    if (socket.alpnProtocol !== 'h2') connections.secure(socket);
  });
  server.on('session', (session: ServerHttp2Session) => connections.open(session));

  server.on('request', admit(handle));
  // The answer itself meets any expectation (RFC 9110 §10.1.1). Nobody has to be told to go on with a body
  // that is not read, and Node would write its 100 into the middle of a pipelined answer.
  server.on('checkContinue', admit(handle));
  server.on('checkExpectation', admit(handle));
  const refuseConnect = admit((request, response) => refuse(request, response, refusals.connect));
  server.on('connect', (request: IncomingMessage, peer: Socket | ServerResponse) => {
    if ('writeHead' in peer) refuseConnect(request, peer);
    else connections.refuseTunnel(peer);
  });
  server.on('clientError', (error: ParserError, socket: Socket) => {
    const connection = connections.find(socket);
    const refusal = refusalOf(error);
    if (connection === undefined || refusal === undefined) socket.destroy();
    else connections.refuse(connection, refusal);
  });

  server.once('listening', () => {
    const sweep = setInterval(() => connections.sweep(), limits.sweepIntervalMs).unref();
    server.once('close', () => clearInterval(sweep));
  });
  return { server, drain: () => connections.drain(), countConnections: () => connections.door };
}

function createPlain(limits: ClientLimits): Server {
  return Object.assign(createServer(http1Settings(limits)), { maxHeadersCount: 0 });
}

/** HTTP/2 and 1.1 by the client's choice (ALPN). */
function createTls(tls: { cert: Buffer; key: Buffer }, limits: ClientLimits): Server {
  const secure = createSecureServer({
    ...tls,
    allowHTTP1: true,
    minVersion: 'TLSv1.2',
    handshakeTimeout: limits.handshakeTimeoutMs,
    noDelay: true,
    // Twice of both: what is over the limit, but not by far, is answered and not just reset.
    maxHeaderListPairs: 2 * limits.maxHeaderFields,
    settings: {
      maxHeaderListSize: 2 * limits.maxHeadBytes,
      maxConcurrentStreams: limits.maxStreams,
    },
  });
  // Node gives HTTP/2 requests the interface of HTTP/1.1's, but takes the settings of 1.1 as properties
  // alone: as options it would ignore them.
  return Object.assign(secure as unknown as Server, http1Settings(limits), { maxHeadersCount: 0 });
}

function http1Settings(limits: ClientLimits) {
  return {
    headersTimeout: limits.headTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: limits.sweepIntervalMs,
    maxHeaderSize: limits.maxHeadBytes,
    // Checked by ourselves, to be refused in our own words.
    requireHostHeader: false,
  };
}

/** Not by the version that it names: a request line of HTTP/1.1 may say `HTTP/2.0`. */
function ownerOf(request: IncomingMessage): object | undefined {
  const http2Request: unknown = request;
  return http2Request instanceof Http2ServerRequest ? http2Request.stream.session : request.socket;
}

/** Reads a body of HTTP/1.1 over, so that the next request is found; but not one without end. */
function discardBody(request: IncomingMessage, maxBytes: number, onTooLarge: () => void): void {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers;
  if (length === '0' && coding === undefined) return;
  let receivedBytes = 0;
  request.on('data', (chunk: Buffer) => {
    receivedBytes += chunk.length;
    if (receivedBytes <= maxBytes) return;
    request.pause();
    onTooLarge();
  });
}
