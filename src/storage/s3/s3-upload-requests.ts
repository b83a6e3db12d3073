import { setTimeout as wait } from 'node:timers/promises';
import {
  AbortMultipartUploadCommand,
  type AbortMultipartUploadCommandInput,
  type S3Client,
} from '@aws-sdk/client-s3';
import { MediaError } from '../../contract/errors.ts';
import { findS3Cause, readS3Failure } from './s3-client.ts';

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

type SendRequest<Output> = (abortSignal: AbortSignal) => Promise<Output>;

/** Sends the requests of uploads, each kind with a deadline of its own, and translates what they fail with. */
export class S3UploadRequests {
  readonly #client: S3Client;
  /** Cleared where the server has said that it does not know `If-None-Match` on what it stores. */
  #knowsConditions = true;

  constructor(client: S3Client) {
    this.#client = client;
  }

  /** What a request carries that must find nothing at its key, if it must. */
  conditionOf(isNew: boolean | undefined): { readonly IfNoneMatch?: '*' } {
    return isNew === true && this.#knowsConditions ? { IfNoneMatch: '*' } : {};
  }

  /** Begins an upload in parts. A stop waits for the response: without it, the upload could not be taken back. */
  async begin<Output>(ask: SendRequest<Output>, signal: AbortSignal): Promise<Output> {
    return this.#ask(ask, AbortSignal.timeout(BEGIN_TIMEOUT_MS), signal);
  }

  /** Sends a part that is in memory; a stop ends it at once. */
  async sendPart<Output>(ask: SendRequest<Output>, signal: AbortSignal): Promise<Output> {
    return this.#ask(ask, signal);
  }

  /**
   * Sends a request that stores something; a stop waits for its response.
   *
   * @param failing aborts where its body fails: then nothing is stored
   * @throws Error if none comes in time after a stop: it may be stored or not; MediaError `MEDIA_EXISTS`,
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

  /** @throws Error if the parts stay where they are */
  async takeBack(upload: AbortMultipartUploadCommandInput): Promise<void> {
    const abort = async (): Promise<void> => {
      const abortSignal = AbortSignal.timeout(ABORT_TIMEOUT_MS);
      // A new one each time: the SDK prepares a request once.
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
   * @param stop its reason is thrown where it is what has ended it
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
      throw this.#translate(error, cause) ?? new Error('The bucket does not take it', { cause });
    }
  }

  #translate(error: unknown, cause: unknown): MediaError | undefined {
    const { name, status } = readS3Failure(error);
    if (status === 412) return new MediaError('MEDIA_EXISTS', { cause });
    if (name === 'NoSuchUpload') return new MediaError('UNKNOWN_MEDIA', { cause });
    const isUnknown = status === 501 && this.#knowsConditions;
    if (isUnknown) this.#knowsConditions = false;
    // Another one is storing it in this moment (Amazon S3 API Reference, "PutObject"); or the next one goes without.
    if (!isUnknown && name !== 'ConditionalRequestConflict') return undefined;
    return new MediaError('OVERLOADED', { cause, bottleneck: 'uploads', retryAfterSeconds: 1 });
  }
}
