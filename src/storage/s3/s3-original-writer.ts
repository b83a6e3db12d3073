import { setTimeout as wait } from 'node:timers/promises';
import {
  AbortMultipartUploadCommand,
  type AbortMultipartUploadCommandInput,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { MediaError } from '../../contract/errors.ts';
import type {
  OriginalWriteOptions,
  OriginalWriter,
} from '../../pipeline/originals/original-writer.ts';
import { gatherPieces } from './pieces.ts';
import {
  createS3Client,
  describeS3Failure,
  isPossibleKey,
  readS3Failure,
  type S3BucketOptions,
} from './s3-client.ts';

/**
 * One part of an upload; what is not larger is sent at once. S3 takes 10 000 parts of 5 MiB and more
 * (Amazon S3 User Guide, "Amazon S3 multipart upload limits"), so that 156 GiB fit.
 */
const PART_BYTES = 16 * 1024 * 1024;
const MAX_PARTS = 10_000;

/** Time to begin an upload in parts, and to take it back, in milliseconds. */
const BEGIN_TIMEOUT_MS = 30_000;
const ABORT_TIMEOUT_MS = 10_000;

/** Time after a stop for the answer to what stores the original, in milliseconds. */
const SETTLE_TIMEOUT_MS = 10_000;

/**
 * Time after which an upload is taken back for the second time, in milliseconds: a part that the server was
 * taking then may have been kept (Amazon S3 API Reference, "AbortMultipartUpload").
 */
const ABORT_AGAIN_AFTER_MS = 500;

/**
 * Writes originals into the bucket that `S3Origin` reads: small ones at once, large ones in parts, one
 * after the other. An upload that fails or is stopped is taken back, since its parts would cost money unseen.
 * The one request that stores the original is not stopped: without its answer, nobody would know whether it did.
 *
 * Not covered: the parts of a process that is killed, and an upload whose beginning was answered too late; a
 * lifecycle rule of the bucket can remove them.
 */
export class S3OriginalWriter implements OriginalWriter {
  readonly #client: S3Client;
  readonly #options: S3BucketOptions;

  /** @param client see `createS3OriginalWriter` */
  constructor(client: S3Client, options: S3BucketOptions) {
    this.#client = client;
    this.#options = options;
  }

  async write(
    key: string,
    chunks: AsyncIterable<Uint8Array>,
    options: OriginalWriteOptions,
  ): Promise<void> {
    const { signal, onProgress } = options;
    signal.throwIfAborted();
    const Key = this.#options.prefix + key;
    if (!isPossibleKey(Key)) throw new Error(`${Key} is not a key that a bucket can have.`);
    const target = { Bucket: this.#options.bucket, Key };
    const pieces = gatherPieces(chunks, PART_BYTES);
    try {
      const { value: first = Buffer.alloc(0) } = await pieces.next();
      if (first.length === PART_BYTES) {
        return await this.#writeInParts(target, first, pieces, options);
      }
      const command = new PutObjectCommand({ ...target, Body: first });
      await this.#settle(signal, (send) => this.#client.send(command, send));
      onProgress?.(first.length);
    } finally {
      await pieces.return(); // else the file that they are read from stayed open
    }
  }

  async #writeInParts(
    target: { readonly Bucket: string; readonly Key: string },
    first: Buffer,
    rest: AsyncIterator<Buffer, void>,
    { signal, onProgress }: OriginalWriteOptions,
  ): Promise<void> {
    const send = { abortSignal: signal };
    // Not stopped by the signal: without the answer, nobody could take the upload back.
    const { UploadId } = await this.#within(signal, () =>
      this.#client.send(new CreateMultipartUploadCommand(target), {
        abortSignal: AbortSignal.timeout(BEGIN_TIMEOUT_MS),
      }),
    );
    const upload = { ...target, UploadId };
    try {
      signal.throwIfAborted();
      const parts: CompletedPart[] = [];
      let writtenBytes = 0;
      for (let Body: Buffer | undefined = first; Body !== undefined; ) {
        const PartNumber = parts.length + 1;
        if (PartNumber > MAX_PARTS) throw new Error(`It has more than ${MAX_PARTS} parts.`);
        const command = new UploadPartCommand({ ...upload, PartNumber, Body });
        const { ETag } = await this.#within(signal, () => this.#client.send(command, send));
        parts.push({ PartNumber, ETag });
        writtenBytes += Body.length;
        onProgress?.(writtenBytes);
        const next = await rest.next();
        Body = next.done === true ? undefined : next.value;
      }
      const command = new CompleteMultipartUploadCommand({
        ...upload,
        MultipartUpload: { Parts: parts },
      });
      await this.#settle(signal, (settling) => this.#client.send(command, settling));
    } catch (error) {
      await this.#abort(upload, error);
      throw error;
    }
  }

  /**
   * Sends the request that stores the original; a stop waits for its answer.
   *
   * @throws Error if none comes in time after a stop: it may be stored or not
   */
  async #settle<Result>(
    signal: AbortSignal,
    request: (send: { readonly abortSignal: AbortSignal }) => Promise<Result>,
  ): Promise<Result> {
    signal.throwIfAborted();
    const late = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const beginToWait = (): void => {
      timer = setTimeout(() => {
        late.abort(new Error('The bucket has not answered; nobody knows whether it is stored'));
      }, SETTLE_TIMEOUT_MS);
    };
    signal.addEventListener('abort', beginToWait, { once: true });
    try {
      return await this.#within(late.signal, () => request({ abortSignal: late.signal }));
    } finally {
      signal.removeEventListener('abort', beginToWait);
      clearTimeout(timer);
    }
  }

  /** @throws Error, with what led to it as cause, if the parts stay where they are */
  async #abort(upload: AbortMultipartUploadCommandInput, cause: unknown): Promise<void> {
    try {
      await this.#takeBack(upload);
      await wait(ABORT_AGAIN_AFTER_MS);
      await this.#takeBack(upload);
    } catch {
      throw new Error('The upload has failed, and its parts cannot be removed', { cause });
    }
  }

  async #takeBack(upload: AbortMultipartUploadCommandInput): Promise<void> {
    const abortSignal = AbortSignal.timeout(ABORT_TIMEOUT_MS);
    try {
      await this.#client.send(new AbortMultipartUploadCommand(upload), { abortSignal });
    } catch (error) {
      if (readS3Failure(error).name !== 'NoSuchUpload') throw error;
    }
  }

  async #within<Result>(signal: AbortSignal, request: () => Promise<Result>): Promise<Result> {
    try {
      return await request();
    } catch (error) {
      signal.throwIfAborted();
      // Of the agent, whose words are for origins; its cause says what happened.
      const isConnecting = error instanceof MediaError;
      const cause = isConnecting
        ? error.cause
        : await describeS3Failure(this.#client, readS3Failure(error));
      throw new Error('The bucket does not take it', { cause });
    }
  }
}

/** Connects to a bucket; see `createS3Client`. */
export function createS3OriginalWriter(options: S3BucketOptions): S3OriginalWriter {
  return new S3OriginalWriter(createS3Client(options), options);
}
