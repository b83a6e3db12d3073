import { IncomingMessage } from 'node:http';
import { GetObjectCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { withDeadline } from '../../pipeline/abort.ts';
import {
  type ResultAddress,
  type ResultStore,
  type StoredResult,
  StoreStalled,
} from '../../pipeline/ports.ts';
import {
  checkPathPrefix,
  formatResultFile,
  MAX_RESULT_FILE_BYTES,
  parseResultFile,
  storedPathOf,
} from '../result-file.ts';
import {
  createS3Client,
  findS3Cause,
  isPossibleKey,
  readS3Failure,
  type S3BucketOptions,
} from './s3-client.ts';
import { removeObjects } from './s3-removal.ts';

/** Where the bucket is, how it is talked to, and how much of it. */
export interface S3ResultStoreOptions extends S3BucketOptions {
  /** For a whole read, a whole write, or one request of a removal, repetitions included; in milliseconds. */
  readonly timeoutMs: number;
  /** Of the largest object that is written or read, in bytes. */
  readonly maxObjectBytes: number;
}

/**
 * Renderings as objects `<prefix><resultPath>` in a bucket of S3, or of a server that speaks its
 * protocol, with the same bytes as in a file of the filesystem store.
 *
 * It does not bound the bucket: a lifecycle rule does, which the operator sets
 * (`deploy/s3-lifecycle.json`). Such a rule counts from the write, not from the last use. A rendering
 * that is too large, or whose key is longer than S3 takes, is not kept, and that is no error.
 *
 * Not covered: a bucket with versions keeps what is removed.
 */
export class S3ResultStore implements ResultStore {
  readonly #client: S3Client;
  readonly #options: S3ResultStoreOptions;
  readonly #maxBytes: number;

  constructor(options: S3ResultStoreOptions) {
    this.#client = createS3Client(options);
    this.#options = options;
    this.#maxBytes = Math.min(options.maxObjectBytes, MAX_RESULT_FILE_BYTES);
  }

  async read(
    address: ResultAddress,
    signal: AbortSignal,
    takeRoom: (sizeBytes: number) => boolean,
  ): Promise<StoredResult | undefined> {
    const Key = this.#options.prefix + storedPathOf(address);
    signal.throwIfAborted();
    if (!isPossibleKey(Key)) return undefined;
    const command = new GetObjectCommand({ Bucket: this.#options.bucket, Key });
    try {
      const bytes = await this.#within(signal, async (abortSignal) => {
        const { Body, ContentLength } = await this.#client.send(command, { abortSignal });
        if (!(Body instanceof IncomingMessage)) throw new Error('The response has no body.');
        const sizeBytes = ContentLength ?? this.#maxBytes;
        if (sizeBytes > this.#maxBytes || abortSignal.aborted || !takeRoom(sizeBytes)) {
          Body.destroy();
          return undefined;
        }
        return readWhole(Body, sizeBytes); // the SDK ends it with the signal, too
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
    if (Body.length > this.#maxBytes) return;
    const command = new PutObjectCommand({ Bucket: this.#options.bucket, Key, Body });
    try {
      await this.#within(undefined, (abortSignal) => this.#client.send(command, { abortSignal }));
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
        within: (request) => this.#within(undefined, request),
      });
    } catch (error) {
      if (error instanceof StoreStalled) throw error;
      throw await this.#translate(error, `The renderings of ${prefix} cannot be removed.`);
    }
  }

  /** Does nothing: the store does nothing by itself, and unused connections keep no process alive. */
  close(): void {}

  #within<Result>(
    signal: AbortSignal | undefined,
    work: (within: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const { timeoutMs } = this.#options;
    const onTimeout = () => new StoreStalled(`There was no whole answer within ${timeoutMs} ms.`);
    return withDeadline(timeoutMs, signal, onTimeout, work);
  }

  async #translate(error: unknown, message: string): Promise<Error> {
    return new Error(message, { cause: await findS3Cause(this.#client, error) });
  }
}

/** All bytes of a body; `undefined` if there are more than so many. */
async function readWhole(
  body: AsyncIterable<Buffer>,
  maxBytes: number,
): Promise<Buffer | undefined> {
  // Not of Node's pool: the body lives on in the memory cache, and would hold 8 KiB of others.
  const bytes = Buffer.allocUnsafeSlow(maxBytes);
  let filled = 0;
  for await (const chunk of body) {
    if (filled + chunk.length > maxBytes) return undefined;
    filled += chunk.copy(bytes, filled);
  }
  if (filled === maxBytes) return bytes;
  // Less than there was room for: the rest is not to be held as long as this.
  const whole = Buffer.allocUnsafeSlow(filled);
  bytes.copy(whole, 0, 0, filled);
  return whole;
}
