import { IncomingMessage } from 'node:http';
import { isResultPath, type ResultAddress } from '../../contract/result-key.ts';
import { isTimeout } from '../../pipeline/abort.ts';
import type { ResultStore, StoredResult } from '../../pipeline/ports.ts';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  type ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from '../aws-sdk.ts';
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
  inTime,
  isPossibleKey,
  readS3Failure,
  type S3Bucket,
} from './client.ts';
import { listObjects } from './listing.ts';

/** Maximum total of bodies being read; beyond it, results are rendered again. */
const MAX_ARRIVING_BYTES = 128 * 1024 ** 2;

/** Concurrent requests of a removal, each for one key: servers disagree about the checksum of `DeleteObjects`. */
const MAX_REMOVALS = 8;

type Location = S3Bucket & { readonly timeoutMs: number };

/**
 * Result store in a bucket: objects `<prefix><resultPath>` with the same bytes as files. Only a lifecycle rule of the
 * operator limits the bucket (`deploy/s3-lifecycle.json`), counted from the write, not from the last use. Renderings
 * that are too large, or whose key is too long for S3, are not stored. Not covered: a bucket with versions keeps
 * removed objects.
 */
export class S3ResultStore implements ResultStore {
  readonly #client: S3Client;
  readonly #location: Location;
  #arrivingBytes = 0;

  /** @param location `timeoutMs` is the deadline of a write, and of each request of a removal, with its retries */
  constructor(location: Location) {
    this.#client = createS3Client(location);
    this.#location = location;
  }

  async read(
    address: ResultAddress,
    signal: AbortSignal,
    onFound: (sizeBytes: number) => void,
  ): Promise<StoredResult | undefined> {
    const Key = this.#location.prefix + storedPathOf(address);
    signal.throwIfAborted();
    if (!isPossibleKey(Key)) return undefined;
    const command = new GetObjectCommand({ Bucket: this.#location.bucket, Key });
    try {
      const { Body, ContentLength: sizeBytes } = await this.#client.send(command, {
        abortSignal: signal,
      });
      if (!(Body instanceof IncomingMessage)) throw new Error('The response has no body.');
      const maxBytes = Math.min(MAX_RESULT_FILE_BYTES, MAX_ARRIVING_BYTES - this.#arrivingBytes);
      if (sizeBytes === undefined || sizeBytes > maxBytes) {
        Body.destroy();
        if (sizeBytes !== undefined) return undefined;
        throw new Error('The response has no Content-Length.');
      }
      onFound(sizeBytes);
      this.#arrivingBytes += sizeBytes;
      const bytes = await readBody(Body, sizeBytes).finally(() => {
        this.#arrivingBytes -= sizeBytes;
      });
      return parseResultFile(bytes, address);
    } catch (error) {
      signal.throwIfAborted();
      const { name } = readS3Failure(error);
      if (name === 'NoSuchKey' || name === 'KeyTooLongError') return undefined;
      throw await this.#translate(error, `The rendering ${Key} cannot be read.`);
    }
  }

  async write(address: ResultAddress, result: StoredResult): Promise<void> {
    const { bucket: Bucket, prefix } = this.#location;
    const Key = prefix + storedPathOf(address);
    const parts = formatResultFile(address, result);
    if (parts === undefined || !isPossibleKey(Key)) return;
    const command = new PutObjectCommand({ Bucket, Key, Body: Buffer.concat(parts) });
    try {
      await this.#within((abortSignal) => this.#client.send(command, { abortSignal }));
    } catch (error) {
      throw await this.#translate(error, `The rendering ${Key} cannot be written.`);
    }
  }

  async remove(prefix: string): Promise<number> {
    checkPathPrefix(prefix);
    const { bucket: Bucket, prefix: root } = this.#location;
    const list = (command: ListObjectsV2Command) =>
      this.#within((abortSignal) => this.#client.send(command, { abortSignal }));
    const removeOne = (Key: string) => {
      const command = new DeleteObjectCommand({ Bucket, Key });
      return this.#within((abortSignal) => this.#client.send(command, { abortSignal }));
    };
    const keys: string[] = [];
    let removed = 0;
    const removeListed = async (): Promise<void> => {
      removed += keys.length;
      await Promise.all(keys.splice(0).map(removeOne));
    };
    try {
      for await (const { key } of listObjects(Bucket, root + prefix, list)) {
        // The bucket may also contain originals, under another name of the bucket.
        if (isResultPath(key)) keys.push(key);
        if (keys.length === MAX_REMOVALS) await removeListed();
      }
      await removeListed();
      return removed;
    } catch (error) {
      if (isTimeout(error)) throw error;
      throw await this.#translate(error, `The renderings of ${prefix} cannot be removed.`);
    }
  }

  close(): void {}

  #within<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    return inTime(this.#location.timeoutMs, work);
  }

  async #translate(error: unknown, message: string): Promise<Error> {
    return new Error(message, { cause: await findS3Cause(this.#client, error) });
  }
}

async function readBody(body: AsyncIterable<Buffer>, sizeBytes: number): Promise<Buffer> {
  // Not from Node's pool: a cached body would retain 8 KiB of others.
  const bytes = Buffer.allocUnsafeSlow(sizeBytes);
  let filled = 0;
  for await (const chunk of body) filled += chunk.copy(bytes, filled);
  return bytes;
}
