import { IncomingMessage } from 'node:http';
import { GetObjectCommand, type GetObjectCommandOutput, type S3Client } from '@aws-sdk/client-s3';
import { MediaError } from '../../contract/errors.ts';
import type { ByteRange, Origin, OriginObject, ReadOptions } from '../../pipeline/ports.ts';
import { readContentRange, readLastModified } from '../origin-object.ts';
import { endWhenStalled } from './origin-agent.ts';
import {
  createS3Client,
  etagOf,
  findS3Cause,
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
 * One GET per read, and no HEAD before. A failed attempt is repeated only before its response has begun:
 * on a broken or refused connection, a 5xx or a throttling; never on another 4xx, a connect deadline,
 * or in the middle of a body. A body that is shorter than its Content-Length ends with an error
 * (Node's HTTP parser), and so does one that stands still.
 *
 * Not covered: objects stored compressed (`Content-Encoding`) are taken as their stored bytes.
 */
export class S3Origin implements Origin {
  readonly #client: S3Client;
  readonly #options: S3OriginOptions;

  constructor(options: S3OriginOptions) {
    this.#client = createS3Client(options);
    this.#options = options;
  }

  async read(key: string, { signal, range }: ReadOptions): Promise<OriginObject> {
    signal.throwIfAborted();
    const objectKey = this.#options.prefix + key;
    if (!isPossibleKey(objectKey)) throw new MediaError('UNKNOWN_MEDIA');
    const command = new GetObjectCommand({
      Bucket: this.#options.bucket,
      Key: objectKey,
      ...(range && { Range: `bytes=${range.first}-${range.last ?? ''}` }),
    });
    let response: GetObjectCommandOutput;
    try {
      response = await this.#client.send(command, { abortSignal: signal });
    } catch (error) {
      signal.throwIfAborted();
      throw await this.#translate(error, range);
    }
    const body = response.Body;
    if (!(body instanceof IncomingMessage)) throw originError('The response has no body.');
    try {
      endWhenStalled(body, this.#options.stallTimeoutMs);
      return describeObject(response, body, range);
    } catch (error) {
      body.destroy();
      throw error;
    }
  }

  async #translate(error: unknown, range: ByteRange | undefined): Promise<MediaError> {
    if (error instanceof MediaError) return error;
    const { name, status, code } = readS3Failure(error);
    if (name === 'NoSuchKey' || name === 'KeyTooLongError') return new MediaError('UNKNOWN_MEDIA');
    if (status === 416 && range !== undefined) return new MediaError('RANGE_NOT_SATISFIABLE');
    const cause = await findS3Cause(this.#client, error);
    return new MediaError(code === 'ETIMEDOUT' ? 'ORIGIN_TIMEOUT' : 'ORIGIN_ERROR', { cause });
  }
}

function describeObject(
  response: GetObjectCommandOutput,
  body: IncomingMessage,
  range: ByteRange | undefined,
): OriginObject {
  const { httpStatusCode: status } = response.$metadata;
  // A part that is taken for the whole would be served for a year.
  if (range === undefined && status !== 200) {
    throw originError(`The response to a request for the whole object is HTTP ${status}.`);
  }
  const etag = etagOf(response);
  if (etag === '') throw originError('The response has no ETag.');
  if (response.ContentLength === undefined)
    throw originError('The response has no Content-Length.');
  return {
    sizeBytes: range === undefined ? response.ContentLength : readWholeSize(response, range),
    etag,
    lastModified: readLastModified(response.LastModified),
    storedContentType: response.ContentType,
    body,
  };
}

/** Size of the whole object, from a response that must have the very range that was asked for. */
function readWholeSize(response: GetObjectCommandOutput, range: ByteRange): number {
  // Some servers respond to a range of an empty object with 200 and nothing.
  if (response.ContentLength === 0) throw new MediaError('RANGE_NOT_SATISFIABLE');
  const { ContentLength, ContentRange } = response;
  // Others, with one of none.
  if (/^bytes \d+-\d+\/0+$/.test(ContentRange ?? '')) throw new MediaError('RANGE_NOT_SATISFIABLE');
  const part = readContentRange(ContentRange ?? '', range, ContentLength);
  if (part === undefined) throw originError(`The response has the range ${ContentRange}.`);
  return part.sizeBytes;
}

function originError(message: string): MediaError {
  return new MediaError('ORIGIN_ERROR', { cause: new Error(message) });
}
