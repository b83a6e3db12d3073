import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { readHead, type WireResponse } from './wire-response.ts';

/** Headers of every response, including those that the listener writes (contract, HTTP). */
export const commonHeaders = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
  'timing-allow-origin': '*',
};

export interface ConnectOptions {
  /** Uses TLS, and accepts any certificate. */
  readonly isTls?: boolean;
  /** Whether the client can still send after the server ended its side. */
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

/** Collects the bytes of a connection: `bytes` so far, and `allBytes` after its end. */
export function collect(socket: Socket) {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  const bytes = (): Buffer => Buffer.concat(chunks);
  // After a reset, the bytes received so far count, as after a regular end.
  const allBytes = () =>
    new Promise<Buffer>((resolve) => socket.once('close', () => resolve(bytes())));
  return { bytes, allBytes };
}

/** Sends bytes, and collects the response until the server closes: add `Connection: close` to valid requests. */
export async function sendBytes(
  port: number,
  bytes: string | Buffer,
  options?: ConnectOptions,
): Promise<Buffer> {
  const socket = await connectTo(port, options);
  const { allBytes } = collect(socket);
  socket.write(bytes, 'latin1');
  return allBytes();
}

/** Sends one HTTP/1.1 request with the exact target. */
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

/** Parses the first response of a connection; the body can be truncated or chunked, and is not decoded. */
export function parseResponse(bytes: Buffer): WireResponse {
  const end = bytes.indexOf('\r\n\r\n');
  return { ...readHead(bytes.subarray(0, end)), body: bytes.subarray(end + 4) };
}
