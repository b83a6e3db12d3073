import { setTimeout as wait } from 'node:timers/promises';
import {
  AbortMultipartUploadCommand,
  type AbortMultipartUploadCommandInput,
  type S3Client,
} from '@aws-sdk/client-s3';
import { MediaError } from '../../contract/errors.ts';
import { findS3Cause, readS3Failure } from './s3-client.ts';

/** Time to create a multipart upload, and to abort it, in milliseconds. */
const BEGIN_TIMEOUT_MS = 30_000;
const ABORT_TIMEOUT_MS = 10_000;

/** Time after a stop for the response to the request that stores the original, in milliseconds. */
const SETTLE_TIMEOUT_MS = 10_000;

/**
 * Delay before an upload is aborted for the second time, in milliseconds: a part that was in transfer during the first
 * may have been kept (Amazon S3 API Reference, "AbortMultipartUpload").
 */
const ABORT_AGAIN_AFTER_MS = 500;

type SendRequest<Output> = (abortSignal: AbortSignal) => Promise<Output>;

/** Requests of uploads, with deadlines by kind, and translated errors. */
export class S3UploadRequests {
  readonly #client: S3Client;
  /** Cleared once the server has reported that it does not support `If-None-Match` on writes. */
  #knowsConditions = true;

  constructor(client: S3Client) {
    this.#client = client;
  }

  /** Returns the condition of a request whose key must not exist, if it must not. */
  conditionOf(isNew: boolean | undefined): { readonly IfNoneMatch?: '*' } {
    return isNew === true && this.#knowsConditions ? { IfNoneMatch: '*' } : {};
  }

  /** Creates a multipart upload. A stop waits for the response: without it, the upload could not be aborted. */
  async begin<Output>(ask: SendRequest<Output>, signal: AbortSignal): Promise<Output> {
    return this.#ask(ask, AbortSignal.timeout(BEGIN_TIMEOUT_MS), signal);
  }

  /** Sends a part that is in memory; a stop ends the request at once. */
  async sendPart<Output>(ask: SendRequest<Output>, signal: AbortSignal): Promise<Output> {
    return this.#ask(ask, signal);
  }

  /**
   * Sends a request that stores an object; a stop waits for its response.
   *
   * @param failing aborts if the body fails: then nothing is stored
   * @throws Error without a response in time after a stop: the object may be stored or not; MediaError `MEDIA_EXISTS`,
   *   `UNKNOWN_MEDIA` (of a part), `OVERLOADED`; Error in the server's words; `signal.reason`
   */
  async settle<Output>(
    ask: SendRequest<Output>,
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
      return await this.#ask(ask, end);
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
   * @param abortSignal ends the request
   * @param stop its reason is thrown if it has ended the request
   */
  async #ask<Output>(
    ask: SendRequest<Output>,
    abortSignal: AbortSignal,
    stop = abortSignal,
  ): Promise<Output> {
    try {
      return await ask(abortSignal);
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
    // Another upload is being stored at this moment (Amazon S3 API Reference, "PutObject"); or the retry goes without
    // the condition.
    if (!isUnknown && name !== 'ConditionalRequestConflict') return undefined;
    return new MediaError('OVERLOADED', { cause, bottleneck: 'uploads', retryAfterSeconds: 1 });
  }
}
