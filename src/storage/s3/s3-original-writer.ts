import { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import {
  AbortMultipartUploadCommand,
  CreateMultipartUploadCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import type {
  OriginalWriteOptions,
  OriginalWriter,
} from '../../pipeline/originals/original-writer.ts';
import {
  createS3Client,
  findS3Cause,
  isPossibleKey,
  readS3Failure,
  type S3BucketOptions,
} from './s3-client.ts';

/**
 * One part of an upload; what is not larger is sent at once. S3 takes 10 000 parts of 5 MiB and more
 * (Amazon S3 User Guide, "Amazon S3 multipart upload limits"), so that 78 GiB fit.
 */
const PART_BYTES = 8 * 1024 * 1024;

/** Time to begin an upload in parts, and to take it back, in milliseconds. */
const BEGIN_TIMEOUT_MS = 30_000;
const ABORT_TIMEOUT_MS = 10_000;

/** Time after a stop for the response to what stores the original, in milliseconds. */
const SETTLE_TIMEOUT_MS = 10_000;

/**
 * Time after which an upload is taken back for the second time, in milliseconds: a part that the server was
 * taking then may have been kept (Amazon S3 API Reference, "AbortMultipartUpload").
 */
const ABORT_AGAIN_AFTER_MS = 500;

/** Any request of an upload. */
type UploadRequest = Parameters<S3Client['send']>[0];

/**
 * Writes originals into the bucket that `S3Origin` reads: small ones at once, large ones in parts, one
 * after the other (`@aws-sdk/lib-storage`). An upload that fails or is stopped is taken back, since its parts
 * would cost money unseen. The one request that stores the original is not stopped: without its response,
 * it would be unknown whether it did.
 *
 * Not covered: the parts of a process that is killed, and an upload of whose beginning the response came too late; a
 * lifecycle rule of the bucket can remove them.
 */
export class S3OriginalWriter implements OriginalWriter {
  readonly #client: S3Client;
  readonly #options: S3BucketOptions;

  constructor(options: S3BucketOptions) {
    this.#client = createS3Client(options);
    this.#options = options;
  }

  async write(
    key: string,
    chunks: AsyncIterable<Uint8Array>,
    { signal, onProgress }: OriginalWriteOptions,
  ): Promise<void> {
    signal.throwIfAborted();
    const { bucket: Bucket, prefix } = this.#options;
    const Key = prefix + key;
    if (!isPossibleKey(Key)) throw new Error(`${Key} is not a key that a bucket can have.`);
    let failure: unknown;
    let arePartsKept = false;
    const send = async (request: UploadRequest): Promise<unknown> => {
      if (request instanceof AbortMultipartUploadCommand) {
        await this.#takeBack(request).catch(() => {
          arePartsKept = true;
        });
        return {};
      }
      try {
        return await this.#send(request, signal);
      } catch (error) {
        failure ??= error;
        throw error;
      }
    };
    const upload = new Upload({
      // Each kind of request has a deadline of its own; those of `Upload` have none.
      client: Object.create(this.#client, { send: { value: send } }),
      params: { Bucket, Key, Body: Readable.from(untilStopped(chunks, signal)) },
      queueSize: 1,
      partSize: PART_BYTES,
    });
    upload.on('httpUploadProgress', ({ loaded }) => onProgress?.(loaded ?? 0));
    try {
      await upload.done();
    } catch (error) {
      const cause = failure ?? error;
      if (!arePartsKept) throw cause;
      throw new Error('The upload has failed, and its parts cannot be removed', { cause });
    }
  }

  async #send(request: UploadRequest, signal: AbortSignal): Promise<unknown> {
    // Not stopped by the signal: without the response, the upload could not be taken back.
    if (request instanceof CreateMultipartUploadCommand) {
      return this.#ask(request, AbortSignal.timeout(BEGIN_TIMEOUT_MS), signal);
    }
    if (request instanceof UploadPartCommand) return this.#ask(request, signal, signal);
    return this.#settle(request, signal);
  }

  /**
   * Sends the request that stores the original; a stop waits for its response.
   *
   * @throws Error if none comes in time after a stop: it may be stored or not
   */
  async #settle(request: UploadRequest, signal: AbortSignal): Promise<unknown> {
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
      return await this.#ask(request, late.signal, late.signal);
    } finally {
      signal.removeEventListener('abort', beginToWait);
      clearTimeout(timer);
    }
  }

  /** @throws Error if the parts stay where they are */
  async #takeBack(request: AbortMultipartUploadCommand): Promise<void> {
    const abort = async (): Promise<void> => {
      const abortSignal = AbortSignal.timeout(ABORT_TIMEOUT_MS);
      // A new one each time: the SDK prepares a request once.
      const command = new AbortMultipartUploadCommand(request.input);
      await this.#client.send(command, { abortSignal }).catch((error: unknown) => {
        if (readS3Failure(error).name !== 'NoSuchUpload') throw error;
      });
    };
    await abort();
    await wait(ABORT_AGAIN_AFTER_MS);
    await abort();
  }

  /**
   * @param abortSignal ends the request
   * @param stop its reason is thrown where it is what has ended it
   */
  async #ask(
    request: UploadRequest,
    abortSignal: AbortSignal,
    stop: AbortSignal,
  ): Promise<unknown> {
    try {
      return await this.#client.send(request, { abortSignal });
    } catch (error) {
      stop.throwIfAborted();
      const cause = await findS3Cause(this.#client, error);
      throw new Error('The bucket does not take it', { cause });
    }
  }
}

/** The same bytes, which end with the signal. */
async function* untilStopped(
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    signal.throwIfAborted();
    yield chunk;
  }
}
