import * as http from 'node:http';
import * as https from 'node:https';
import type { Socket } from 'node:net';
import { MediaError } from '../../contract/errors.ts';
import { isTimeout, timeoutError, withDeadline } from '../../pipeline/abort.ts';
import { AccessRefused } from '../../pipeline/ports.ts';
import { createCredentialProvider } from '../aws-credentials.ts';
import { S3Client } from '../aws-sdk.ts';

/** Connection settings of a server. */
export interface S3ConnectionOptions {
  /** Concurrent connections; further requests wait for one, and their wait counts as the origin's time. */
  readonly maxConnections: number;
  /** Longest time from the lookup of the name to the end of the TLS handshake, in milliseconds. */
  readonly connectTimeoutMs: number;
  readonly region: string;
  /** Scheme, host and port of a server that is not AWS. */
  readonly endpoint: string | undefined;
  /** Whether the bucket's name is in the path instead of the host name. */
  readonly forcePathStyle: boolean;
}

/** A bucket, and the connection settings of its server. */
export interface S3BucketOptions extends S3ConnectionOptions {
  readonly bucket: string;
  /** Prefix of every key; empty, or ending in `/`. */
  readonly prefix: string;
}

/** Most attempts of one request, the first included. The SDK's back-off is exponential, with full jitter. */
const MAX_ATTEMPTS = 3;

/** Time after which an unused connection is closed, in milliseconds: before AWS closes it after some 20 s. */
const IDLE_TIMEOUT_MS = 15_000;

const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Longest key of S3 in bytes of UTF-8 (Amazon S3 User Guide, "Object key naming guidelines"). */
const MAX_KEY_BYTES = 1_024;

/** Most bytes of an error response: S3's own have some hundred. */
const MAX_ERROR_BYTES = 64 * 1024;

/** Longest message of a server that is logged, in UTF-16 units. */
const MAX_MESSAGE_LENGTH = 300;

/** Creates a client, with credentials as `createCredentialProvider` finds them. */
export function createS3Client(options: S3ConnectionOptions): S3Client {
  const { region, endpoint, forcePathStyle } = options;
  return new S3Client({
    region,
    forcePathStyle,
    credentials: createCredentialProvider(),
    ...(endpoint !== undefined && { endpoint }),
    maxAttempts: MAX_ATTEMPTS,
    retryMode: 'standard',
    // Not the SDK's newer defaults: older servers reject or ignore their headers.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      httpAgent: createAgent('http:', options),
      httpsAgent: createAgent('https:', options),
      // A slow reader would trigger this timeout; see `endWhenStalled`.
      socketTimeout: 0,
      // Otherwise the SDK writes to the console when connections are scarce.
      logger: { debug: ignore, info: ignore, warn: ignore, error: ignore },
    },
    streamCollector: collectBody,
  });
}

/**
 * Returns an agent whose connections have a deadline to open; a late one fails its request with MediaError
 * `ORIGIN_TIMEOUT`. The time of the SDK's own setting includes the wait for a free connection, and omits TLS.
 *
 * A read on a reused connection has the same time for its response. After it the SDK sends the read again, on a new
 * connection: a firewall or a failover may have dropped the reused one without a packet.
 */
function createAgent(
  protocol: 'http:' | 'https:',
  { maxConnections, connectTimeoutMs }: S3ConnectionOptions,
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
    // The SDK cannot repeat a streamed body, and the response to one comes late.
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

/** Closes the connections that wait for a request, so that the next request gets a new one. */
function closeIdle({ freeSockets }: http.Agent): void {
  for (const socket of Object.values(freeSockets).flat()) socket?.destroy();
}

/**
 * Collects a body for the SDK, which has no bound for the bodies of errors.
 *
 * @throws Error beyond the bound; leaving the loop destroys the body, and its connection with it
 */
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

/** Whether an object can have this key, and servers accept it as signed. */
export function isPossibleKey(key: string): boolean {
  return (
    Buffer.byteLength(key) <= MAX_KEY_BYTES &&
    // Proxies and some servers normalize such paths, to another object than the signed one.
    key.split('/').every((segment) => segment !== '' && segment !== '.' && segment !== '..')
  );
}

/** Returns the tag of a response, without quotes. In S3, weak and strong tags both mean one upload of one content. */
export function etagOf(output: unknown): string {
  const { ETag = '' } = output as { readonly ETag?: string };
  return ETag.replace(/^W\//, '').replaceAll('"', '');
}

/**
 * Reads an error that the SDK has thrown.
 *
 * @returns `name`: the server's code, such as `NoSuchKey`, or the class of a local error; `code` of a system call, such
 *   as `ECONNREFUSED`; `status` of the server's response
 */
export function readS3Failure(error: unknown) {
  const { name, message, code, $metadata } = error as Error & {
    readonly code?: string;
    readonly $metadata?: { httpStatusCode?: number; requestId?: string; attempts?: number };
  };
  const { httpStatusCode: status, requestId, attempts } = $metadata ?? {};
  return { name, message, code, status, requestId, attempts };
}

/** Runs requests with a deadline, retries included. @throws Error with the name `TimeoutError` after the deadline */
export function inTime<Result>(
  timeoutMs: number,
  work: (abortSignal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const onTimeout = () => timeoutError(`No complete response within ${timeoutMs} ms.`);
  return withDeadline(timeoutMs, undefined, onTimeout, work);
}

/** Returns the cause of a failed request, from the agent, the SDK, the server or the network, without credentials. */
export async function findS3Cause(client: S3Client, error: unknown): Promise<unknown> {
  // The agent's MediaError is for clients; its cause says what happened.
  if (error instanceof MediaError) return error.cause;
  if (isTimeout(error)) return error;
  const { name, message, code, status, requestId, attempts } = readS3Failure(error);
  const facts = [
    code,
    status && `HTTP ${status}`,
    requestId && `request ${requestId}`,
    attempts && `attempts: ${attempts}`,
  ].filter(Boolean);
  const shown = status === undefined ? message : await redact(client, message);
  const details = facts.length === 0 ? '' : ` (${facts.join(', ')})`;
  const text = `${name}${details}: ${shown.slice(0, MAX_MESSAGE_LENGTH)}`;
  return name === 'AccessDenied' ? new AccessRefused(text) : new Error(text);
}

/** Redacts credentials: some servers quote the access key in their errors. Without credentials, all is redacted. */
async function redact(client: S3Client, message: string): Promise<string> {
  const used = await client.config.credentials().catch(() => undefined);
  if (used === undefined) return '';
  return [used.accessKeyId, used.secretAccessKey, used.sessionToken].reduce<string>(
    (text, secret) => (secret ? text.replaceAll(secret, '***') : text),
    message,
  );
}
