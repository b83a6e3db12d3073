import { setTimeout as wait } from 'node:timers/promises';
import { MediaError } from '../../contract/errors.ts';
import type { OriginalWriteOptions } from '../../pipeline/originals/original-writer.ts';
import {
  type $Command,
  AbortMultipartUploadCommand,
  type AbortMultipartUploadCommandInput,
  type S3Client,
  type S3ClientResolvedConfig,
  type ServiceInputTypes,
  type ServiceOutputTypes,
} from '../aws-sdk.ts';
import { findS3Cause, readS3Failure } from './client.ts';

/**
 * Size of one part of an upload; smaller uploads are sent at once. S3 accepts 10 000 parts of 5 MiB and more (Amazon S3
 * User Guide, "Amazon S3 multipart upload limits"), so that 78 GiB fit.
 */
export const PART_BYTES = 8 * 1024 * 1024;

/** A piece of an upload that is sent by one request; the next piece overwrites its bytes. */
export interface Part {
  readonly bytes: Buffer;
  readonly isLast: boolean;
}

const ABORT_TIMEOUT_MS = 10_000;

/** Time after a stop for the response to the request that stores the original, in milliseconds. */
const SETTLE_TIMEOUT_MS = 10_000;

/**
 * Delay before an upload is aborted for the second time, in milliseconds: a part that was in transfer during the first
 * may have been kept (Amazon S3 API Reference, "AbortMultipartUpload").
 */
const ABORT_AGAIN_AFTER_MS = 500;

type Command<Input extends ServiceInputTypes, Output extends ServiceOutputTypes> = $Command<
  Input,
  Output,
  S3ClientResolvedConfig,
  ServiceInputTypes,
  ServiceOutputTypes
>;

/** Requests of uploads, with deadlines by kind, and translated errors. */
export class S3UploadRequests {
  readonly #client: S3Client;
  /** Cleared once the server has reported that it does not support conditions on writes. */
  #knowsConditions = true;

  constructor(client: S3Client) {
    this.#client = client;
  }

  conditionOf({ isNew, ifMatch }: Pick<OriginalWriteOptions, 'isNew' | 'ifMatch'>): {
    readonly IfNoneMatch?: '*';
    readonly IfMatch?: string;
  } {
    if (!this.#knowsConditions) return {};
    if (ifMatch !== undefined) return { IfMatch: `"${ifMatch}"` };
    return isNew === true ? { IfNoneMatch: '*' } : {};
  }

  /**
   * Sends a request that stores an object; a stop waits for its response.
   *
   * @param failing aborts if the body fails: then nothing is stored
   * @throws Error without a response in time after a stop: the object may be stored or not; and as `send`
   */
  async settle<Input extends ServiceInputTypes, Output extends ServiceOutputTypes>(
    command: Command<Input, Output>,
    signal: AbortSignal,
    failing?: AbortSignal,
  ): Promise<Output> {
    signal.throwIfAborted();
    const late = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const beginToWait = (): void => {
      timer = setTimeout(() => {
        late.abort(new Error('The bucket has not answered; nobody knows whether it is stored'));
      }, SETTLE_TIMEOUT_MS);
    };
    const end = failing === undefined ? late.signal : AbortSignal.any([late.signal, failing]);
    signal.addEventListener('abort', beginToWait, { once: true });
    try {
      return await this.send(command, end);
    } finally {
      signal.removeEventListener('abort', beginToWait);
      clearTimeout(timer);
    }
  }

  /** @throws Error if the parts remain */
  async takeBack(upload: AbortMultipartUploadCommandInput): Promise<void> {
    const abort = async (): Promise<void> => {
      const abortSignal = AbortSignal.timeout(ABORT_TIMEOUT_MS);
      // A new command each time: the SDK prepares a request once.
      const command = new AbortMultipartUploadCommand(upload);
      await this.#client.send(command, { abortSignal }).catch((error: unknown) => {
        if (readS3Failure(error).name !== 'NoSuchUpload') throw error;
      });
    };
    await abort();
    await wait(ABORT_AGAIN_AFTER_MS);
    await abort();
  }

  /**
   * @param stop its reason is thrown if it has aborted
   * @throws MediaError `MEDIA_EXISTS`, `UNKNOWN_MEDIA` (of a part), `OVERLOADED`; Error in the server's words;
   *   `stop.reason`
   */
  async send<Input extends ServiceInputTypes, Output extends ServiceOutputTypes>(
    command: Command<Input, Output>,
    abortSignal: AbortSignal,
    stop = abortSignal,
  ): Promise<Output> {
    try {
      return await this.#client.send(command, { abortSignal });
    } catch (error) {
      stop.throwIfAborted();
      const cause = await findS3Cause(this.#client, error);
      throw this.#translate(error, cause) ?? new Error('A request to the bucket failed', { cause });
    }
  }

  #translate(error: unknown, cause: unknown): MediaError | undefined {
    const { name, status } = readS3Failure(error);
    if (status === 412) return new MediaError('MEDIA_EXISTS', { cause });
    if (name === 'NoSuchUpload') return new MediaError('UNKNOWN_MEDIA', { cause });
    const isUnknown = status === 501 && this.#knowsConditions;
    if (isUnknown) this.#knowsConditions = false;
    // Another upload is being stored now (Amazon S3 API Reference, "PutObject"); or the retry omits the condition.
    if (!isUnknown && name !== 'ConditionalRequestConflict') return undefined;
    return new MediaError('OVERLOADED', { cause, bottleneck: 'uploads', retryAfterSeconds: 1 });
  }
}

/** Fills one part after the other, in the same memory; the last may be shorter, and is empty only if alone. */
export async function* fillParts(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Part> {
  const buffer = Buffer.allocUnsafeSlow(PART_BYTES);
  let filled = 0;
  for await (const chunk of chunks) {
    for (let taken = 0; taken < chunk.length; ) {
      // Only now is it known that this part is not the last.
      if (filled === PART_BYTES) {
        yield { bytes: buffer, isLast: false };
        filled = 0;
      }
      const count = Math.min(PART_BYTES - filled, chunk.length - taken);
      buffer.set(chunk.subarray(taken, taken + count), filled);
      filled += count;
      taken += count;
    }
  }
  yield { bytes: buffer.subarray(0, filled), isLast: true };
}
