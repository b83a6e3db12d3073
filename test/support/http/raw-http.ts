import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { readHead, type WireResponse } from './wire-response.ts';

/** What every response has, whichever part of the service has written it (contract, HTTP). */
export const commonHeaders = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
  'timing-allow-origin': '*',
};

/** How a connection is opened. */
export interface ConnectOptions {
  /** With TLS, and any certificate. */
  readonly isTls?: boolean;
  /** It can still send when the server has ended. */
  readonly allowHalfOpen?: boolean;
}

/** Opens a connection to a port of this machine. */
export async function connectTo(
  port: number,
  { isTls = false, allowHalfOpen = false }: ConnectOptions = {},
): Promise<Socket> {
  const options = { port, host: '127.0.0.1', allowHalfOpen, rejectUnauthorized: false };
  const socket = isTls ? connectTls(options) : connect(options);
  socket.on('error', () => undefined);
  await once(socket, isTls ? 'secureConnect' : 'connect');
  return socket;
}

/** Collects what comes over a connection: what has come so far, and all of it at its end. */
export function collect(socket: Socket) {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  const bytes = (): Buffer => Buffer.concat(chunks);
  // A reset is an end like others: what has come counts.
  const whole = () =>
    new Promise<Buffer>((resolve) => socket.once('close', () => resolve(bytes())));
  return { bytes, whole };
}

/**
 * Sends bytes as they are and collects all that comes back until the server hangs up; requests
 * must therefore say `Connection: close` or be wrong.
 */
export async function sendBytes(
  port: number,
  bytes: string | Buffer,
  options?: ConnectOptions,
): Promise<Buffer> {
  const socket = await connectTo(port, options);
  const { whole } = collect(socket);
  socket.write(bytes, 'latin1');
  return whole();
}

/** Sends one request of HTTP/1.1 whose target is sent as it is. */
export async function sendRaw(
  port: number,
  method: string,
  target: string,
  headers: Readonly<Record<string, string>> = {},
  body = '',
  options?: ConnectOptions,
): Promise<WireResponse> {
  const lines = Object.entries({ Host: 'cdn.example', Connection: 'close', ...headers });
  const head = [
    `${method} ${target} HTTP/1.1`,
    ...lines.map(([name, value]) => `${name}: ${value}`),
  ];
  return parseResponse(await sendBytes(port, `${head.join('\r\n')}\r\n\r\n${body}`, options));
}

/** Takes the first response of a connection apart, whose body may be cut off, or in chunks. */
export function parseResponse(bytes: Buffer): WireResponse {
  const end = bytes.indexOf('\r\n\r\n');
  return { ...readHead(bytes.subarray(0, end)), body: bytes.subarray(end + 4) };
}
