import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Config } from '../../config/config.ts';
import type { Observers } from '../request-state.ts';
import type { Connection } from './connection.ts';
import { type ClientLimits, Connections } from './connections.ts';
import {
  countRefusal,
  formatRefusal,
  type ParserError,
  type Refusal,
  refusalOf,
  refusals,
} from './refusal.ts';

/** Handlers of the requests that have passed the checks of a listener. */
interface Routes {
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** Returns the methods at a request target, as in `Allow`; `undefined` if the path is unknown. */
  findMethods(target: string): string | undefined;
  /** Whether the handler reads the body, regardless of its length. Omit to discard all bodies. */
  readonly isUpload: ((request: IncomingMessage) => boolean) | undefined;
}

/**
 * Listener of HTTP/1.1, plain or with TLS 1.2 and later. It protects the service from slow, hostile or too many clients,
 * and forwards valid requests, with limited concurrency.
 */
export class Listener {
  /** Connections of all servers: Fastify creates one for each address of `localhost`. */
  readonly connections: Connections;
  readonly #tls: Config['http']['tls'];
  readonly #limits: ClientLimits;
  readonly #uploadLimits: ClientLimits;
  readonly #meter: Observers['meter'];
  readonly #routes: Routes;

  constructor(
    { tls, maxConnections }: Pick<Config['http'], 'tls' | 'maxConnections'>,
    limits: ClientLimits,
    { clock, log, meter }: Pick<Observers, 'clock' | 'log' | 'meter'>,
    routes: Routes,
  ) {
    this.connections = new Connections(maxConnections, limits, clock, log, meter);
    this.#tls = tls;
    this.#limits = limits;
    this.#uploadLimits = { ...limits, maxHeadBytes: limits.maxUploadHeadBytes };
    this.#meter = meter;
    this.#routes = routes;
  }

  createServer(): Server | TlsServer {
    const { connections } = this;
    const limits = this.#limits;
    const { isUpload, findMethods } = this.#routes;
    const settings = {
      headersTimeout: limits.headTimeoutMs,
      // `discardBody` bounds the time of bodies; uploads have no maximum.
      requestTimeout: 0,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: limits.sweepIntervalMs,
      maxHeaderSize: (isUpload === undefined ? limits : this.#uploadLimits).maxHeadBytes,
      // `checkMessage` checks the host, and responds as JSON.
      requireHostHeader: false,
    };
    const tlsSettings = {
      minVersion: 'TLSv1.2',
      handshakeTimeout: limits.handshakeTimeoutMs,
    } as const;
    const server =
      this.#tls === undefined
        ? createServer(settings)
        : createTlsServer({ ...this.#tls, ...settings, ...tlsSettings });
    server.maxHeadersCount = 0; // `checkMessage` counts them; Node would drop the excess silently
    const admit = (request: IncomingMessage, response: ServerResponse): void =>
      this.#admit(request, response);
    server.on('connection', (transport: Socket) => connections.accept(transport));
    server.on('secureConnection', (socket: Socket) => connections.secure(socket));
    server.on('request', admit);
    // A final response suffices for any expectation (RFC 9110 §10.1.1). Without a handler of `checkContinue`, Node would
    // write its 100 into a pipelined response.
    server.on('checkContinue', admit);
    server.on('checkExpectation', admit);
    server.on('connect', (_request: IncomingMessage, socket: Socket) => {
      const connection = connections.find(socket);
      if (connection === undefined) socket.destroy();
      else connection.refuseTunnel();
    });
    server.on('clientError', (error: ParserError, socket: Socket) => {
      const connection = connections.find(socket);
      const refusal = refusalOf(error, findMethods);
      if (connection === undefined || refusal === undefined) socket.destroy();
      else connection.refuse(refusal);
    });
    server.once('listening', () => {
      const sweep = setInterval(() => connections.sweep(), limits.sweepIntervalMs).unref();
      server.once('close', () => clearInterval(sweep));
    });
    return server;
  }

  #admit(request: IncomingMessage, response: ServerResponse): void {
    const { handle, isUpload } = this.#routes;
    const connection = this.connections.find(request.socket);
    if (connection === undefined || !connection.begin(request, response)) {
      request.destroy();
      return;
    }
    // Each pipelined request occupies memory and counts as running.
    if (connection.responses.size > this.#limits.maxPipelinedRequests) {
      connection.transport.destroy();
      return;
    }
    // Upgrades are not supported, but the parser stops after a request for one.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
    const isWithBody = hasBody(request);
    const isForHandler = isUpload?.(request) === true;
    if (isWithBody && !isForHandler) discardBody(request, connection, this.#limits);
    const refusal =
      checkMessage(request, isForHandler ? this.#uploadLimits : this.#limits) ??
      (this.connections.isOverloaded ? refusals.overloaded : undefined);
    if (refusal !== undefined) {
      countRefusal(this.#meter, refusal);
      sendRefusal(request, response, refusal);
    } else if (isWithBody) {
      // Lets the parser first read the beginning of the body, and reject it if it is not valid HTTP.
      queueMicrotask(() => handle(request, response));
    } else {
      handle(request, response);
    }
  }
}

function hasBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = headers;
  return length !== '0' || coding !== undefined;
}

/** Characters of a URI's host and port (RFC 3986 §3.2.2), except the comma, which joins hosts; may be empty (RFC 9110 §7.2). */
const HOST = /^[\w.~%!$&'()*+;=:[\]-]*$/;

/**
 * Rejects invalid messages that Node's lenient parser accepts, since a proxy in front may interpret their boundaries or
 * host differently. Not covered, because proxies normalize them: a bare LF before the request line, and two spaces in it.
 */
function checkMessage(
  request: IncomingMessage,
  limits: Pick<ClientLimits, 'maxHeadBytes' | 'maxHeaderFields'>,
): Refusal | undefined {
  const { httpVersion, rawHeaders, headers, url = '' } = request;
  if (rawHeaders.length > 2 * limits.maxHeaderFields) return refusals.headTooLarge;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return refusals.badMessage;
  // Exactly one host, except for HTTP/1.0 (RFC 9112 §3.2). Node keeps the first of several.
  let hosts = 0;
  let fieldBytes = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
    fieldBytes += (name?.length ?? 0) + (rawHeaders[index + 1]?.length ?? 0);
  }
  // Counts like Node's parser, whose limit is that of uploads if uploads are enabled.
  if (url.length + fieldBytes >= limits.maxHeadBytes) return refusals.headTooLarge;
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) return refusals.badMessage;
  const { host = '', 'transfer-encoding': coding } = headers;
  if (!HOST.test(host)) return refusals.badMessage;
  // Only chunked is supported, and not by HTTP/1.0 (RFC 9112 §6.1).
  const isCodingKnown =
    coding === undefined || (coding.toLowerCase() === 'chunked' && httpVersion === '1.1');
  return isCodingKnown ? undefined : refusals.badMessage;
}

/**
 * Rejects a request whose head was read, and ends the connection, except under overload without a body: a proxy would
 * replace its lost connections at once.
 */
function sendRefusal(request: IncomingMessage, response: ServerResponse, refusal: Refusal): void {
  const { status, headers, body } = formatRefusal(refusal);
  if (refusal !== refusals.overloaded || hasBody(request)) response.shouldKeepAlive = false;
  response.writeHead(status, headers);
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** Reads and discards a body up to limits of bytes and time, so that the connection can be reused. */
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
