import { Readable } from 'node:stream';
import { MediaError } from '../../contract/errors.ts';
import {
  type OriginalWriteOptions,
  type OriginalWriter,
  type PartWriteOptions,
  untilAborted,
} from '../../pipeline/originals/original-writer.ts';
import {
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectTaggingCommand,
  HeadObjectCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '../aws-sdk.ts';
import {
  createS3Client,
  etagOf,
  findS3Cause,
  isPossibleKey,
  readS3Failure,
  type S3Bucket,
} from './client.ts';
import { fillParts, PART_BYTES, type Part, S3UploadRequests } from './upload-requests.ts';

/** Maximum size for one request (Amazon S3 User Guide, "Uploading objects"). */
const MAX_SINGLE_BYTES = 5 * 1024 ** 3;

const BEGIN_TIMEOUT_MS = 30_000;

const ETAG_TIMEOUT_MS = 5_000;

const BODY_BUFFER_BYTES = 64 * 1024;

/**
 * Writes originals into a bucket. Uploads of known length stream in one request; small ones of unknown length are sent
 * at once, others in sequential parts. Failed multipart uploads are aborted, since invisible parts cost money. A stop
 * waits for the response once the body is sent: without it, the original may or may not be stored.
 *
 * Not covered:
 * - If a server ignores `If-None-Match: *`, perhaps only for multipart uploads, the last of two concurrent uploads wins,
 *   unless a check finds the first.
 * - If a bucket stores an original but reports a failure, the condition of the SDK's retry fails.
 * - Parts of a killed process, and uploads whose creation is confirmed late, need a lifecycle rule to remove them.
 */
export class S3OriginalWriter implements OriginalWriter {
  readonly #client: S3Client;
  readonly #requests: S3UploadRequests;
  readonly #bucket: S3Bucket;

  constructor(bucket: S3Bucket) {
    this.#client = createS3Client(bucket);
    this.#requests = new S3UploadRequests(this.#client);
    this.#bucket = bucket;
  }

  async write(
    key: string,
    chunks: AsyncIterable<Uint8Array>,
    options: OriginalWriteOptions,
  ): Promise<string> {
    const { signal, sizeBytes, contentType, ifMatch } = options;
    signal.throwIfAborted();
    const address = this.#addressOf(key);
    const attributes =
      ifMatch === undefined
        ? { ContentType: contentType }
        : await this.#readAttributes(address, ifMatch, signal);
    const object = { ...address, ...attributes };
    const input = { ...object, ContentLength: sizeBytes, ...this.#requests.conditionOf(options) };
    const isBuffered = this.memoryBytesOf(sizeBytes) > 0;
    const writing = isBuffered
      ? this.#writeInParts(object, chunks, options)
      : this.#stream(chunks, signal, (Body, bodyFailed) =>
          this.#requests.commit(new PutObjectCommand({ ...input, Body }), signal, bodyFailed),
        );
    const etag = await writing.catch(async (error: unknown) => {
      const isConditionFailed = error instanceof MediaError && error.code === 'MEDIA_EXISTS';
      if (ifMatch === undefined || !isConditionFailed) throw error;
      const head = await this.#head(address, signal);
      throw this.#requests.explainFailedCondition(
        head !== undefined && etagOf(head) === ifMatch,
        error,
      );
    });
    if (etag !== '') return etag;
    // Ceph returns no ETag for a completed multipart upload. If reading the ETag fails, the upload still succeeds.
    const abortSignal = AbortSignal.any([signal, AbortSignal.timeout(ETAG_TIMEOUT_MS)]);
    return this.#client
      .send(new HeadObjectCommand(address), { abortSignal })
      .then(etagOf, () => '');
  }

  async has(key: string, signal: AbortSignal): Promise<boolean> {
    return this.#exists(this.#addressOf(key), signal);
  }

  memoryBytesOf(sizeBytes: number | undefined): number {
    return sizeBytes === undefined || sizeBytes > MAX_SINGLE_BYTES ? PART_BYTES : 0;
  }

  readonly writePart = async (
    key: string,
    chunks: AsyncIterable<Uint8Array>,
    { uploadId, partNumber, sizeBytes, signal }: PartWriteOptions,
  ): Promise<string> => {
    const part = { UploadId: uploadId, PartNumber: partNumber, ContentLength: sizeBytes };
    const address = this.#addressOf(key);
    return this.#stream(chunks, signal, (Body, bodyFailed) => {
      const command = new UploadPartCommand({ ...address, ...part, Body });
      return this.#requests.commit(command, signal, bodyFailed);
    });
  };

  #addressOf(key: string): ObjectAddress {
    const { bucket, prefix } = this.#bucket;
    const address = { Bucket: bucket, Key: prefix + key };
    if (!isPossibleKey(address.Key)) throw new Error(`${address.Key} is not a valid S3 key.`);
    return address;
  }

  async #stream(
    chunks: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
    send: (body: Readable, bodyFailed: AbortSignal) => Promise<unknown>,
  ): Promise<string> {
    const bodyFailure = new AbortController();
    const body = Readable.from(untilAborted(chunks, signal), {
      objectMode: false,
      highWaterMark: BODY_BUFFER_BYTES,
    });
    // The SDK would wait for the rest of the body forever.
    body.once('error', (error) => bodyFailure.abort(error));
    try {
      return etagOf(await send(body, bodyFailure.signal));
    } finally {
      body.destroy();
    }
  }

  /** Reads the attributes to copy. @throws MediaError `PRECONDITION_FAILED` if the ETag of the object differs */
  async #readAttributes(address: ObjectAddress, ifMatch: string, abortSignal: AbortSignal) {
    const head = await this.#head(address, abortSignal);
    if (head === undefined || etagOf(head) !== ifMatch) throw new MediaError('PRECONDITION_FAILED');
    const { TagCount = 0, CacheControl, ContentDisposition, ContentEncoding } = head;
    const { ContentLanguage, ContentType, Expires, Metadata, StorageClass } = head;
    const { ServerSideEncryption, SSEKMSKeyId, WebsiteRedirectLocation } = head;
    const tags =
      TagCount === 0
        ? undefined
        : await this.#client.send(new GetObjectTaggingCommand(address), { abortSignal });
    // Not URLSearchParams: servers would read its `+` as a plus sign.
    const pairs = tags?.TagSet?.map(({ Key = '', Value = '' }) =>
      [Key, Value].map(encodeURIComponent).join('='),
    );
    return {
      CacheControl,
      ContentDisposition,
      ContentEncoding,
      ContentLanguage,
      ContentType,
      Expires,
      Metadata,
      StorageClass,
      ServerSideEncryption,
      SSEKMSKeyId,
      WebsiteRedirectLocation,
      Tagging: pairs?.join('&'),
    };
  }

  /** Writes an upload of unknown length with one part in memory; the SDK's `Upload` needs three times as much. */
  async #writeInParts(
    object: ObjectAddress,
    chunks: AsyncIterable<Uint8Array>,
    options: OriginalWriteOptions,
  ): Promise<string> {
    const { signal } = options;
    const parts = fillParts(untilAborted(chunks, signal));
    try {
      const { value: first } = await parts.next();
      if (first?.isLast === false) return await this.#completeParts(object, first, parts, options);
      const Body = first?.bytes ?? Buffer.alloc(0);
      const condition = this.#requests.conditionOf(options);
      const command = new PutObjectCommand({ ...object, ...condition, Body });
      return etagOf(await this.#requests.commit(command, signal));
    } finally {
      // Ends the source if sending the first part fails, before `for await` would end it.
      await parts.return(undefined);
    }
  }

  async #completeParts(
    object: ObjectAddress,
    first: Part,
    rest: AsyncGenerator<Part>,
    options: OriginalWriteOptions,
  ): Promise<string> {
    const { signal, isNew, ifMatch } = options;
    const address = { Bucket: object.Bucket, Key: object.Key };
    const creation = new CreateMultipartUploadCommand(object);
    // A stop waits for the response, which is needed to abort the upload.
    const inTime = AbortSignal.timeout(BEGIN_TIMEOUT_MS);
    const { UploadId } = await this.#requests.send(creation, inTime, signal);
    try {
      const Parts: CompletedPart[] = [];
      const send = async ({ bytes: Body }: Part): Promise<void> => {
        const PartNumber = Parts.length + 1;
        const part = new UploadPartCommand({ ...address, UploadId, PartNumber, Body });
        const { ETag } = await this.#requests.send(part, signal);
        Parts.push({ PartNumber, ETag });
      };
      await send(first);
      for await (const part of rest) await send(part);
      signal.throwIfAborted();
      if (isNew === true && (await this.#exists(address, signal))) {
        throw new MediaError('MEDIA_EXISTS');
      }
      if (ifMatch !== undefined) await this.#readAttributes(address, ifMatch, signal);
      const condition = this.#requests.conditionOf(options);
      const input = { ...address, ...condition, UploadId, MultipartUpload: { Parts } };
      const completion = new CompleteMultipartUploadCommand(input);
      return etagOf(await this.#requests.commit(completion, signal));
    } catch (cause) {
      await this.#requests.abortUpload({ ...address, UploadId }).catch(() => {
        throw new Error('The upload has failed, and its parts could not be removed', { cause });
      });
      throw cause;
    }
  }

  async #exists(address: ObjectAddress, abortSignal: AbortSignal): Promise<boolean> {
    return (await this.#head(address, abortSignal)) !== undefined;
  }

  /** Returns `undefined` for a missing object: without the permission to list, S3 returns 403 instead of 404. */
  async #head(address: ObjectAddress, abortSignal: AbortSignal) {
    try {
      return await this.#client.send(new HeadObjectCommand(address), { abortSignal });
    } catch (error) {
      abortSignal.throwIfAborted();
      const { status } = readS3Failure(error);
      if (status === 404 || status === 403) return undefined;
      const cause = await findS3Cause(this.#client, error);
      throw new Error('The check for an object failed', { cause });
    }
  }
}

interface ObjectAddress {
  readonly Bucket: string;
  readonly Key: string;
}
