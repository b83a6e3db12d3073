import { IncomingMessage } from 'node:http';
import { GetObjectCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { isTimeout, timeoutError, withDeadline } from '../../pipeline/abort.ts';
import type { ResultAddress, ResultStore, StoredResult } from '../../pipeline/ports.ts';
import {
  checkPathPrefix,
  formatResultFile,
  MAX_RESULT_FILE_BYTES,
  parseResultFile,
  storedPathOf,
} from '../results/result-file.ts';
import {
  createS3Client,
  findS3Cause,
  isPossibleKey,
  readS3Failure,
  type S3BucketOptions,
} from './client.ts';
import { removeObjects } from './s3-removal.ts';

/** Connection settings of the bucket. */
export interface S3ResultStoreOptions extends S3BucketOptions {
  /** Deadline of a whole write, or of one request of a removal, retries included; in milliseconds. */
  readonly timeoutMs: number;
}

/** Bytes of bodies that arrive at the same time: beyond it, a rendering is made anew. */
const MAX_ARRIVING_BYTES = 128 * 1024 ** 2;

/**
 * Renderings as objects `<prefix><resultPath>` in a bucket of S3, or of a server with the same protocol, with the same
 * bytes as in a file of the filesystem store.
 *
 * The store does not bound the bucket: a lifecycle rule of the operator does (`deploy/s3-lifecycle.json`). Such a rule
 * counts from the write, not from the last use. A rendering that is too large, or whose key is too long for S3, is not
 * stored, which is not an error.
 *
 * Not covered: a bucket with versions keeps removed objects.
 */
export class S3ResultStore implements ResultStore {
  readonly #client: S3Client;
  readonly #options: S3ResultStoreOptions;
  #arrivingBytes = 0;

  constructor(options: S3ResultStoreOptions) {
    this.#client = createS3Client(options);
    this.#options = options;
  }

  async read(
    address: ResultAddress,
    signal: AbortSignal,
    onFound: (sizeBytes: number) => void,
  ): Promise<StoredResult | undefined> {
    const Key = this.#options.prefix + storedPathOf(address);
    signal.throwIfAborted();
    if (!isPossibleKey(Key)) return undefined;
    const command = new GetObjectCommand({ Bucket: this.#options.bucket, Key });
    try {
      const { Body, ContentLength } = await this.#client.send(command, { abortSignal: signal });
      if (!(Body instanceof IncomingMessage)) throw new Error('The response has no body.');
      const sizeBytes = ContentLength ?? MAX_RESULT_FILE_BYTES;
      const isTooLarge = sizeBytes > MAX_RESULT_FILE_BYTES;
      if (isTooLarge || this.#arrivingBytes + sizeBytes > MAX_ARRIVING_BYTES) {
        Body.destroy();
        return undefined;
      }
      onFound(sizeBytes);
      this.#arrivingBytes += sizeBytes;
      // The SDK also ends the body with the signal.
      const bytes = await readWhole(Body, sizeBytes).finally(() => {
        this.#arrivingBytes -= sizeBytes;
      });
      return bytes && parseResultFile(bytes, address);
    } catch (error) {
      signal.throwIfAborted();
      const { name } = readS3Failure(error);
      if (name === 'NoSuchKey' || name === 'KeyTooLongError') return undefined;
      throw await this.#translate(error, `The rendering ${Key} cannot be read.`);
    }
  }

  async write(address: ResultAddress, result: StoredResult): Promise<void> {
    const Key = this.#options.prefix + storedPathOf(address);
    const parts = formatResultFile(address, result);
    if (parts === undefined || !isPossibleKey(Key)) return;
    const Body = Buffer.concat(parts);
    const command = new PutObjectCommand({ Bucket: this.#options.bucket, Key, Body });
    try {
      await this.#within((abortSignal) => this.#client.send(command, { abortSignal }));
    } catch (error) {
      throw await this.#translate(error, `The rendering ${Key} cannot be written.`);
    }
  }

  async remove(prefix: string): Promise<number> {
    checkPathPrefix(prefix);
    try {
      return await removeObjects(this.#client, {
        bucket: this.#options.bucket,
        prefix: this.#options.prefix + prefix,
        within: (request) => this.#within(request),
      });
    } catch (error) {
      if (isTimeout(error)) throw error;
      throw await this.#translate(error, `The renderings of ${prefix} cannot be removed.`);
    }
  }

  /** Does nothing: the store has no background work, and unused connections keep no process alive. */
  close(): void {}

  #within<Result>(work: (within: AbortSignal) => Promise<Result>): Promise<Result> {
    const { timeoutMs } = this.#options;
    const onTimeout = () => timeoutError(`No complete response within ${timeoutMs} ms.`);
    return withDeadline(timeoutMs, undefined, onTimeout, work);
  }

  async #translate(error: unknown, message: string): Promise<Error> {
    return new Error(message, { cause: await findS3Cause(this.#client, error) });
  }
}

/** Reads all bytes of a body; returns `undefined` beyond `maxBytes`. */
async function readWhole(
  body: AsyncIterable<Buffer>,
  maxBytes: number,
): Promise<Buffer | undefined> {
  // Not from Node's pool: the body lives on in the memory cache, and would retain 8 KiB of others.
  const bytes = Buffer.allocUnsafeSlow(maxBytes);
  let filled = 0;
  for await (const chunk of body) {
    if (filled + chunk.length > maxBytes) return undefined;
    filled += chunk.copy(bytes, filled);
  }
  if (filled === maxBytes) return bytes;
  // Shorter than announced: a copy frees the rest.
  const whole = Buffer.allocUnsafeSlow(filled);
  bytes.copy(whole, 0, 0, filled);
  return whole;
}
