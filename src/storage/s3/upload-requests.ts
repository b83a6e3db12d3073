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

/** S3 accepts 10 000 parts of at least 5 MiB (Amazon S3 User Guide, "Amazon S3 multipart upload limits"): 78 GiB. */
export const PART_BYTES = 8 * 1024 * 1024;

/** Part of an upload. The next part overwrites its bytes. */
export interface Part {
  readonly bytes: Buffer;
  readonly isLast: boolean;
}

const ABORT_TIMEOUT_MS = 10_000;

/** Wait after a stop for the response to the request that stores the original. */
const SETTLE_TIMEOUT_MS = 10_000;

/** A part in transfer may survive the first abort (Amazon S3 API Reference, "AbortMultipartUpload"). */
const ABORT_AGAIN_AFTER_MS = 500;

type Command<Input extends ServiceInputTypes, Output extends ServiceOutputTypes> = $Command<
  Input,
  Output,
  S3ClientResolvedConfig,
  ServiceInputTypes,
  ServiceOutputTypes
>;

export class S3UploadRequests {
  readonly #client: S3Client;
  /** Cleared once the server has reported that it does not support conditional writes. */
  #supportsConditions = true;
  /** Whether tags are quoted in conditions: Ceph 16 compares them as text, without quotes. */
  #hasQuotes = true;

  constructor(client: S3Client) {
    this.#client = client;
  }

  conditionOf({ isNew, ifMatch }: Pick<OriginalWriteOptions, 'isNew' | 'ifMatch'>): {
    readonly IfNoneMatch?: '*';
    readonly IfMatch?: string;
  } {
    if (!this.#supportsConditions) return {};
    if (ifMatch !== undefined) return { IfMatch: this.#hasQuotes ? `"${ifMatch}"` : ifMatch };
    return isNew === true ? { IfNoneMatch: '*' } : {};
  }

  /**
   * Returns `PRECONDITION_FAILED`, or `OVERLOADED` if the next attempt omits the quotes.
   * @param isCurrent whether the object has the tag of the condition
   */
  explainFailedCondition(isCurrent: boolean, cause: unknown): MediaError {
    if (!isCurrent || !this.#hasQuotes) return new MediaError('PRECONDITION_FAILED', { cause });
    this.#hasQuotes = false;
    return new MediaError('OVERLOADED', { cause, bottleneck: 'uploads', retryAfterSeconds: 1 });
  }

  /**
   * Sends a request that stores an object; a stop waits for its response.
   * @param bodyFailed aborts if the body fails, so that the object is not stored
   * @throws Error if no response arrives in time after a stop; errors of `send`
   */
  async commit<Input extends ServiceInputTypes, Output extends ServiceOutputTypes>(
    command: Command<Input, Output>,
    signal: AbortSignal,
    bodyFailed?: AbortSignal,
  ): Promise<Output> {
    signal.throwIfAborted();
    const late = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const startTimer = (): void => {
      timer = setTimeout(() => {
        late.abort(new Error('No response from the bucket: the object may or may not be stored'));
      }, SETTLE_TIMEOUT_MS);
    };
    const end = bodyFailed === undefined ? late.signal : AbortSignal.any([late.signal, bodyFailed]);
    signal.addEventListener('abort', startTimer, { once: true });
    try {
      return await this.send(command, end);
    } finally {
      signal.removeEventListener('abort', startTimer);
      clearTimeout(timer);
    }
  }

  /** @throws Error if parts may remain */
  async abortUpload(upload: AbortMultipartUploadCommandInput): Promise<void> {
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
   * @throws MediaError `MEDIA_EXISTS`, `UNKNOWN_MEDIA` (of a part), `OVERLOADED`; Error with the server's message;
   *   `stop.reason`
   *
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
    const isUnsupported = status === 501 && this.#supportsConditions;
    if (isUnsupported) this.#supportsConditions = false;
    // Another upload is being stored (Amazon S3 API Reference, "PutObject"); or the retry omits the condition.
    if (!isUnsupported && name !== 'ConditionalRequestConflict') return undefined;
    return new MediaError('OVERLOADED', { cause, bottleneck: 'uploads', retryAfterSeconds: 1 });
  }
}

/** Fills one part after the other in the same memory. The last part may be shorter; only a single part may be empty. */
export async function* fillParts(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Part> {
  const buffer = Buffer.allocUnsafeSlow(PART_BYTES);
  let filled = 0;
  for await (const chunk of chunks) {
    for (let taken = 0; taken < chunk.length; ) {
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
