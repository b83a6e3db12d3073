import * as http from 'node:http';
import * as https from 'node:https';
import type { Socket } from 'node:net';
import { MediaError } from '../../contract/errors.ts';
import { isTimeout, timeoutError, withDeadline } from '../../pipeline/abort.ts';
import { AccessRefused } from '../../pipeline/ports.ts';
import { createCredentialProvider } from '../aws-credentials.ts';
import { S3Client } from '../aws-sdk.ts';
import type { LocationOf, OriginalsLocation } from '../backend.ts';

type Location = LocationOf<OriginalsLocation, 's3'>;

export type S3Bucket = S3Server & Pick<Location, 'bucket' | 'prefix'>;

/** Requests beyond `maxConnections` wait, which counts towards the origin's deadlines. */
export type S3Server = Pick<
  Location,
  'maxConnections' | 'connectTimeoutMs' | 'region' | 'endpoint' | 'forcePathStyle'
>;

/** The SDK's back-off is exponential, with full jitter. */
const MAX_ATTEMPTS = 3;

/** AWS closes an unused connection after 20 s. */
const IDLE_TIMEOUT_MS = 15_000;

const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** In bytes of UTF-8 (Amazon S3 User Guide, "Object key naming guidelines"). */
const MAX_KEY_BYTES = 1_024;

/** Error responses of S3 have some hundred bytes. */
const MAX_ERROR_BYTES = 64 * 1024;

const MAX_MESSAGE_LENGTH = 300;

export function createS3Client(server: S3Server): S3Client {
  const { region, endpoint, forcePathStyle } = server;
  return new S3Client({
    region,
    forcePathStyle,
    credentials: createCredentialProvider(),
    ...(endpoint !== undefined && { endpoint }),
    maxAttempts: MAX_ATTEMPTS,
    retryMode: 'standard',
    // The SDK's newer defaults send headers that older servers reject or ignore.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      httpAgent: createAgent('http:', server),
      httpsAgent: createAgent('https:', server),
      // A socket timeout would abort slow readers, too; see `endWhenStalled`.
      socketTimeout: 0,
      // By default the SDK writes to the console when connections are scarce.
      logger: { debug: ignore, info: ignore, warn: ignore, error: ignore },
    },
    streamCollector: collectBody,
  });
}

/**
 * Returns an agent with a deadline for opening connections, after which a request fails with MediaError
 * `ORIGIN_TIMEOUT`. The SDK's own timeout includes the wait for a free connection, and omits TLS.
 *
 * A read on a reused connection has the same deadline for its response, after which the SDK repeats it on a new one: a
 * firewall or a failover may have dropped the reused connection without a packet.
 */
function createAgent(
  protocol: 'http:' | 'https:',
  { maxConnections, connectTimeoutMs }: S3Server,
): http.Agent {
  const options = { keepAlive: true, maxSockets: maxConnections, timeout: IDLE_TIMEOUT_MS };
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
  const reuse = agent.reuseSocket.bind(agent);
  agent.reuseSocket = (socket, request) => {
    reuse(socket, request);
    // The SDK cannot repeat a streamed body, whose response also arrives late.
    if (!REPEATABLE.has(request.method)) return;
    const timer = setTimeout(() => {
      closeIdle(agent);
      const message = `No response on a reused connection within ${connectTimeoutMs} ms.`;
      request.destroy(Object.assign(new Error(message), { code: 'ETIMEDOUT' }));
    }, connectTimeoutMs);
    const settle = (): void => clearTimeout(timer);
    request.once('response', settle).once('close', settle);
  };
  return agent;
}

function closeIdle({ freeSockets }: http.Agent): void {
  for (const socket of Object.values(freeSockets).flat()) socket?.destroy();
}

/** Collects a body for the SDK, which does not limit error responses. Leaving the loop destroys the connection. */
async function collectBody(body: http.IncomingMessage): Promise<Uint8Array> {
  const { statusCode = 0 } = body;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (statusCode >= 300 && bytes > MAX_ERROR_BYTES) {
      throw new Error(`HTTP ${statusCode} with an error of more than ${MAX_ERROR_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function ignore(): void {}

/** Whether a key is valid, and no server changes its signed path. */
export function isPossibleKey(key: string): boolean {
  return (
    Buffer.byteLength(key) <= MAX_KEY_BYTES &&
    // Proxies and some servers would normalize such paths, which then name other objects.
    key.split('/').every((segment) => segment !== '' && segment !== '.' && segment !== '..')
  );
}

/** Returns the tag of a response without quotes. In S3, weak and strong tags both identify one upload. */
export function etagOf(output: unknown): string {
  const { ETag = '' } = output as { readonly ETag?: string };
  return ETag.replace(/^W\//, '').replaceAll('"', '');
}

/**
 * Reads an error of the SDK: `name` is the server's code, such as `NoSuchKey`, or the class of a local error; `code` is
 * that of a system call, such as `ECONNREFUSED`.
 */
export function readS3Failure(error: unknown) {
  const { name, message, code, $metadata } = error as Error & {
    readonly code?: string;
    readonly $metadata?: { httpStatusCode?: number; requestId?: string; attempts?: number };
  };
  const { httpStatusCode: status, requestId, attempts } = $metadata ?? {};
  return { name, message, code, status, requestId, attempts };
}

/** @throws Error with the name `TimeoutError`, after all retries */
export function inTime<Result>(
  timeoutMs: number,
  work: (abortSignal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const onTimeout = () => timeoutError(`No complete response within ${timeoutMs} ms.`);
  return withDeadline(timeoutMs, undefined, onTimeout, work);
}

export async function findS3Cause(client: S3Client, error: unknown): Promise<unknown> {
  // The agent's MediaError is for clients; its cause is for the log.
  if (error instanceof MediaError) return error.cause;
  if (isTimeout(error)) return error;
  const { name, message, code, status, requestId, attempts } = readS3Failure(error);
  const parts = [
    code,
    status && `HTTP ${status}`,
    requestId && `request ${requestId}`,
    attempts && `attempts: ${attempts}`,
  ].filter(Boolean);
  const shown = status === undefined ? message : await redact(client, message);
  const details = parts.length === 0 ? '' : ` (${parts.join(', ')})`;
  const text = `${name}${details}: ${shown.slice(0, MAX_MESSAGE_LENGTH)}`;
  return name === 'AccessDenied' ? new AccessRefused(text) : new Error(text);
}

/** Redacts credentials, which some servers quote in errors; without known credentials, the complete message. */
async function redact(client: S3Client, message: string): Promise<string> {
  const used = await client.config.credentials().catch(() => undefined);
  if (used === undefined) return '';
  return [used.accessKeyId, used.secretAccessKey, used.sessionToken].reduce<string>(
    (text, secret) => (secret ? text.replaceAll(secret, '***') : text),
    message,
  );
}
