import { IncomingMessage } from 'node:http';
import { GetObjectCommand, type GetObjectCommandOutput, S3Client } from '@aws-sdk/client-s3';
import { MediaError } from '../media/errors.ts';
import type { ByteRange, Origin, OriginObject } from '../pipeline/ports.ts';
import { type ConnectionLimits, createOriginAgent, endWhenStalled } from './origin-agent.ts';

/** Where the bucket is and how it is talked to. */
export interface S3OriginOptions extends ConnectionLimits {
  readonly bucket: string;
  /** Before every key; empty, or ending in `/`. */
  readonly prefix: string;
  readonly region: string;
  /** Of a server that is not AWS: scheme, host and port. */
  readonly endpoint: string | undefined;
  /** Whether the bucket's name is in the path, and not in the host name. */
  readonly forcePathStyle: boolean;
  /** How long a body may stand still while its reader waits for it, in milliseconds. */
  readonly stallTimeoutMs: number;
}

/** Of one read, the first included. The wait in between is the SDK's: exponential, with full jitter. */
const MAX_ATTEMPTS = 3;

/** Longest key of S3 in bytes of UTF-8 (Amazon S3 User Guide, "Object key naming guidelines"). */
const MAX_KEY_BYTES = 1_024;

/** Longest message of a server that goes into the log, in UTF-16 units. */
const MAX_MESSAGE_LENGTH = 300;

/**
 * Originals in a bucket of S3, or of a server that speaks its protocol.
 *
 * One GET per read, and no HEAD before. A failed attempt is repeated only before its answer has begun:
 * on a broken or refused connection, a 5xx or a throttling; never on another 4xx, a connect deadline,
 * or in the middle of a body. A body that is shorter than its Content-Length ends with an error
 * (Node's HTTP parser), and so does one that stands still.
 *
 * Not covered: objects stored compressed (`Content-Encoding`) are taken as their stored bytes; an
 * error answer without end is read until the first-byte deadline.
 */
export class S3Origin implements Origin {
  readonly #client: S3Client;
  readonly #options: S3OriginOptions;

  /** @param client see `createS3Origin` */
  constructor(client: S3Client, options: S3OriginOptions) {
    this.#client = client;
    this.#options = options;
  }

  async read(
    key: string,
    { signal, range }: { readonly signal: AbortSignal; readonly range?: ByteRange },
  ): Promise<OriginObject> {
    signal.throwIfAborted();
    const objectKey = this.#options.prefix + key;
    if (!isPossibleKey(objectKey)) throw new MediaError('UNKNOWN_MEDIA');
    const command = new GetObjectCommand({
      Bucket: this.#options.bucket,
      Key: objectKey,
      ...(range && { Range: `bytes=${range.first}-${range.last ?? ''}` }),
    });
    let answer: GetObjectCommandOutput;
    try {
      answer = await this.#client.send(command, { abortSignal: signal });
    } catch (error) {
      signal.throwIfAborted();
      throw await this.#translate(error);
    }
    const body = answer.Body;
    if (!(body instanceof IncomingMessage)) throw originError('The answer has no body.');
    try {
      endWhenStalled(body, this.#options.stallTimeoutMs);
      return describeObject(answer, body, range);
    } catch (error) {
      body.destroy();
      throw error;
    }
  }

  /** Says what the SDK, the server or the network reported, without a credential in it. */
  async #translate(error: unknown): Promise<MediaError> {
    if (error instanceof MediaError) return error;
    const { name, message, code, status, requestId, attempts } = readFailure(error);
    if (name === 'NoSuchKey' || name === 'KeyTooLongError') return new MediaError('UNKNOWN_MEDIA');
    if (status === 416) return new MediaError('RANGE_NOT_SATISFIABLE');
    const facts = [
      code,
      status && `HTTP ${status}`,
      requestId && `request ${requestId}`,
      attempts && `attempts: ${attempts}`,
    ].filter(Boolean);
    const shown = status === undefined ? message : await this.#redact(message);
    const cause = new Error(`${name} (${facts.join(', ')}): ${shown.slice(0, MAX_MESSAGE_LENGTH)}`);
    return new MediaError(code === 'ETIMEDOUT' ? 'ORIGIN_TIMEOUT' : 'ORIGIN_ERROR', { cause });
  }

  /** Some servers quote the access key in their refusals. */
  async #redact(message: string): Promise<string> {
    const used = await this.#client.config.credentials();
    return [used.accessKeyId, used.secretAccessKey, used.sessionToken].reduce<string>(
      (text, secret) => (secret ? text.replaceAll(secret, '***') : text),
      message,
    );
  }
}

/**
 * Connects to a bucket; nothing is asked of it before the first read. Credentials come from the SDK's
 * usual chain: environment, shared files, container, instance.
 */
export function createS3Origin(options: S3OriginOptions): S3Origin {
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
      // Else it tells the console when connections are scarce.
      logger: { debug: ignore, info: ignore, warn: ignore, error: ignore },
    },
  });
  return new S3Origin(client, options);
}

function ignore(): void {}

function isPossibleKey(key: string): boolean {
  return (
    Buffer.byteLength(key) <= MAX_KEY_BYTES &&
    // Proxies and some servers normalize such paths, to another object than the one that was signed.
    key.split('/').every((segment) => segment !== '' && segment !== '.' && segment !== '..')
  );
}

function describeObject(
  answer: GetObjectCommandOutput,
  body: IncomingMessage,
  range: ByteRange | undefined,
): OriginObject {
  // Weak or strong: in S3 either stands for one upload of one content.
  const etag = answer.ETag?.replace(/^W\//, '').replaceAll('"', '');
  if (etag === undefined || etag === '') throw originError('The answer has no ETag.');
  if (answer.ContentLength === undefined) throw originError('The answer has no Content-Length.');
  return {
    sizeBytes: range === undefined ? answer.ContentLength : readWholeSize(answer, range),
    etag,
    lastModified: answer.LastModified,
    storedContentType: answer.ContentType,
    body,
  };
}

/** Size of the whole object, from an answer that must have the very range that was asked for. */
function readWholeSize(answer: GetObjectCommandOutput, range: ByteRange): number {
  // Some servers answer a range of an empty object with 200 and nothing.
  if (answer.ContentLength === 0) throw new MediaError('RANGE_NOT_SATISFIABLE');
  const [, first, last, size] =
    /^bytes (\d+)-(\d+)\/(\d+)$/.exec(answer.ContentRange ?? '')?.map(Number) ?? [];
  if (
    size === undefined ||
    first !== range.first ||
    last !== Math.min(range.last ?? Infinity, size - 1) ||
    answer.ContentLength !== last - first + 1
  ) {
    throw originError(`The answer has the range ${answer.ContentRange}.`);
  }
  return size;
}

/** What there is to know of a failed request; the SDK adds properties of its own to any error. */
function readFailure(error: unknown) {
  const { name, message, code, $metadata } = error as Error & {
    readonly code?: string;
    readonly $metadata?: { httpStatusCode?: number; requestId?: string; attempts?: number };
  };
  return { name, message, code, status: $metadata?.httpStatusCode, ...$metadata };
}

function originError(message: string): MediaError {
  return new MediaError('ORIGIN_ERROR', { cause: new Error(message) });
}
