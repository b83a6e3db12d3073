import { IncomingMessage } from 'node:http';
import { addAbortSignal } from 'node:stream';
import { S3Client } from '@aws-sdk/client-s3';
import { MediaError } from '../../contract/errors.ts';
import { AccessRefused } from '../../pipeline/ports.ts';
import { type ConnectionLimits, createOriginAgent } from './origin-agent.ts';

/** Where a server is and how it is talked to. */
export interface S3ConnectionOptions extends ConnectionLimits {
  readonly region: string;
  /** Of a server that is not AWS: scheme, host and port. */
  readonly endpoint: string | undefined;
  /** Whether the bucket's name is in the path, and not in the host name. */
  readonly forcePathStyle: boolean;
}

/** A bucket, and how its server is talked to. */
export interface S3BucketOptions extends S3ConnectionOptions {
  readonly bucket: string;
  /** Before every key; empty, or ending in `/`. */
  readonly prefix: string;
}

/** Of one request, the first included. The wait in between is the SDK's: exponential, with full jitter. */
const MAX_ATTEMPTS = 3;

/** Longest key of S3 in bytes of UTF-8 (Amazon S3 User Guide, "Object key naming guidelines"). */
const MAX_KEY_BYTES = 1_024;

/** Of an error response, in bytes: S3's own have some hundred. */
const MAX_ERROR_BYTES = 64 * 1024;

/** Longest message of a server that goes into the log, in UTF-16 units. */
const MAX_MESSAGE_LENGTH = 300;

/**
 * Connects to a server; nothing is asked of it before the first request. Credentials come from the SDK's
 * usual chain: environment, shared files, container, instance.
 */
export function createS3Client(options: S3ConnectionOptions): S3Client {
  const { region, endpoint, forcePathStyle } = options;
  const client = new S3Client({
    region,
    forcePathStyle,
    ...(endpoint !== undefined && { endpoint }),
    maxAttempts: MAX_ATTEMPTS,
    retryMode: 'standard',
    // Newer defaults of the SDK: older servers refuse or ignore their headers.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      httpAgent: createOriginAgent('http:', options),
      httpsAgent: createOriginAgent('https:', options),
      // A slow reader would trip it; see `endWhenStalled`.
      socketTimeout: 0,
      // Else it writes to the console when connections are scarce.
      logger: { debug: ignore, info: ignore, warn: ignore, error: ignore },
    },
  });
  boundErrors(client);
  return client;
}

/** Has error responses read within a bound, and no longer than their request may take: the SDK knows neither. */
function boundErrors(client: S3Client): void {
  const { requestHandler } = client.config;
  const handle = requestHandler.handle.bind(requestHandler);
  requestHandler.handle = async (request, options: { readonly abortSignal?: unknown } = {}) => {
    const output = await handle(request, options);
    const { statusCode, body } = output.response;
    if (statusCode >= 300 && body instanceof IncomingMessage) {
      const { abortSignal } = options;
      if (abortSignal instanceof AbortSignal) addAbortSignal(abortSignal, body);
      output.response.body = await readError(body, statusCode);
    }
    return output;
  };
}

/** @throws Error if there is more than the bound; then its connection is closed */
async function readError(body: IncomingMessage, status: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    // To leave the loop destroys the body, and its connection with it.
    if (bytes > MAX_ERROR_BYTES) {
      throw new Error(`HTTP ${status} with an error of more than ${MAX_ERROR_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function ignore(): void {}

/** Whether a server can have an object under a key, and takes it as it is signed. */
export function isPossibleKey(key: string): boolean {
  return (
    Buffer.byteLength(key) <= MAX_KEY_BYTES &&
    // Proxies and some servers normalize such paths, to another object than the one that was signed.
    key.split('/').every((segment) => segment !== '' && segment !== '.' && segment !== '..')
  );
}

/** The tag that a response tells, without quotes. Weak or strong: in S3 either stands for one upload of one content. */
export function etagOf(output: unknown): string {
  const { ETag = '' } = output as { readonly ETag?: string };
  return ETag.replace(/^W\//, '').replaceAll('"', '');
}

/**
 * Reads what the SDK has thrown; it adds properties of its own to any error.
 *
 * @returns `name`: the server's code, or the class of a local error, such as `NoSuchKey`; `code` of a system call, such as
 *   `ECONNREFUSED`; `status` of the server's response, without which none came
 */
export function readS3Failure(error: unknown) {
  const { name, message, code, $metadata } = error as Error & {
    readonly code?: string;
    readonly $metadata?: { httpStatusCode?: number; requestId?: string; attempts?: number };
  };
  const { httpStatusCode: status, requestId, attempts } = $metadata ?? {};
  return { name, message, code, status, requestId, attempts };
}

/** Why a request has failed: what the agent, the SDK, the server or the network says, without a credential in it. */
export async function findS3Cause(client: S3Client, error: unknown): Promise<unknown> {
  // Of the agent, whose words are for origins; its cause says what happened.
  if (error instanceof MediaError) return error.cause;
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

/** Some servers quote the access key in their refusals. */
async function redact(client: S3Client, message: string): Promise<string> {
  const used = await client.config.credentials();
  return [used.accessKeyId, used.secretAccessKey, used.sessionToken].reduce<string>(
    (text, secret) => (secret ? text.replaceAll(secret, '***') : text),
    message,
  );
}
