import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Connection } from './connection.ts';
import { type ClientLimits, Connections, type ConnectionsOptions } from './limits.ts';
import {
  countRefusal,
  type FindMethods,
  findFormFault,
  hasBody,
  type ParserError,
  refusalOf,
  refusals,
  sendRefusal,
} from './refusal.ts';

/** Parts and settings of a listener. */
export interface ListenerOptions extends ConnectionsOptions {
  /** Certificate and key in PEM; with them the listener speaks TLS 1.2 and newer. */
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  readonly findMethods: FindMethods;
  /** Whether the body of a request is for its handler, however long it is; `undefined`: no body is. */
  readonly isUpload: ((request: IncomingMessage) => boolean) | undefined;
}

type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Listener of HTTP/1.1, plain or with TLS. It stands between the service and slow, hostile or too many clients, and
 * hands over well-formed requests, up to a number at a time.
 */
export class Listener {
  /** Connections of all servers: `localhost` has two addresses, and so two servers. */
  readonly connections: Connections;
  readonly #options: ListenerOptions;
  readonly #handle: RequestHandler;
  readonly #uploadLimits: ClientLimits;

  constructor(options: ListenerOptions, handle: RequestHandler) {
    this.connections = new Connections(options);
    this.#options = options;
    this.#handle = handle;
    this.#uploadLimits = { ...options.limits, maxHeadBytes: options.limits.maxUploadHeadBytes };
  }

  createServer(): Server | TlsServer {
    const { connections } = this;
    const { limits, tls, isUpload, findMethods } = this.#options;
    const settings = parserSettings(isUpload === undefined ? limits : this.#uploadLimits);
    const tlsSettings = {
      minVersion: 'TLSv1.2',
      handshakeTimeout: limits.handshakeTimeoutMs,
    } as const;
    const server =
      tls === undefined
        ? createServer(settings)
        : createTlsServer({ ...tls, ...settings, ...tlsSettings });
    server.maxHeadersCount = 0; // `findFormFault` counts them: Node drops what is too much
    const admit = (request: IncomingMessage, response: ServerResponse): void =>
      this.#admit(request, response);
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

  /** Hands a request over, unless it is malformed or one too many. */
  #admit(request: IncomingMessage, response: ServerResponse): void {
    const { limits, meter, isUpload } = this.#options;
    const connection = this.connections.find(request.socket);
    if (connection === undefined || !connection.begin(request, response)) {
      request.destroy();
      return;
    }
    // Each holds its request and a place among all; no well-meaning client comes near.
    if (connection.responses.size > limits.maxPipelinedRequests) {
      connection.transport.destroy();
      return;
    }
    // We offer no upgrade, but the parser reads nothing after a request for one.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
    const isWithBody = hasBody(request);
    const isForHandler = isUpload?.(request) === true;
    if (isWithBody && !isForHandler) discardBody(request, connection, limits);
    const formLimits = isForHandler ? this.#uploadLimits : limits;
    const refusal =
      findFormFault(request, formLimits) ??
      (this.connections.isOverloaded ? refusals.overloaded : undefined);
    if (refusal !== undefined) {
      countRefusal(meter, refusal);
      sendRefusal(request, response, refusal);
    } else if (isWithBody) {
      // By then the parser has read what came along: a body that is no HTTP is rejected, not responded to.
      queueMicrotask(() => this.#handle(request, response));
    } else {
      this.#handle(request, response);
    }
  }
}

function parserSettings(limits: ClientLimits) {
  return {
    headersTimeout: limits.headTimeoutMs,
    // `discardBody` bounds the time of bodies: an upload may take as long as it likes.
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: limits.sweepIntervalMs,
    maxHeaderSize: limits.maxHeadBytes,
    // `findFormFault` checks it, for a response in our own words.
    requireHostHeader: false,
  };
}

/** Reads and discards a body, so that the next request is found, within bounds of bytes and time. */
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
