import { IncomingMessage } from 'node:http';
import { GetObjectCommand, type GetObjectCommandOutput, type S3Client } from '@aws-sdk/client-s3';
import { MediaError } from '../../contract/errors.ts';
import type { ByteRange, Origin, OriginObject } from '../../pipeline/ports.ts';
import { readLastModified } from '../last-modified.ts';
import { endWhenStalled } from './origin-agent.ts';
import {
  createS3Client,
  describeS3Failure,
  isPossibleKey,
  readS3Failure,
  type S3BucketOptions,
} from './s3-client.ts';

/** Where the bucket is and how it is talked to. */
export interface S3OriginOptions extends S3BucketOptions {
  /** How long a body may stand still while its reader waits for it, in milliseconds. */
  readonly stallTimeoutMs: number;
}

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

  async #translate(error: unknown): Promise<MediaError> {
    if (error instanceof MediaError) return error;
    const failure = readS3Failure(error);
    const { name, status, code } = failure;
    if (name === 'NoSuchKey' || name === 'KeyTooLongError') return new MediaError('UNKNOWN_MEDIA');
    if (status === 416) return new MediaError('RANGE_NOT_SATISFIABLE');
    const cause = await describeS3Failure(this.#client, failure);
    return new MediaError(code === 'ETIMEDOUT' ? 'ORIGIN_TIMEOUT' : 'ORIGIN_ERROR', { cause });
  }
}

/** Connects to a bucket; see `createS3Client`. */
export function createS3Origin(options: S3OriginOptions): S3Origin {
  return new S3Origin(createS3Client(options), options);
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
    lastModified: readLastModified(answer.LastModified),
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

function originError(message: string): MediaError {
  return new MediaError('ORIGIN_ERROR', { cause: new Error(message) });
}
