import { formatCauses, MediaError } from '../../contract/errors.ts';
import type { MetadataOutcome } from '../../contract/metadata.ts';
import type { RelayCapability } from '../../contract/signing/relay-capability.ts';
import { withDeadline } from '../abort.ts';
import type { MediaPipeline } from '../media-pipeline.ts';
import { sha256Of } from '../originals/digests.ts';
import type { OriginalWriter } from '../originals/original-writer.ts';
import { cleanChunks, isRefusal, openCleaner } from './metadata-removal.ts';
import { checkBeginning, checkBody, type PaceLimits, refuse, UploadBody } from './upload-body.ts';

/** An upload as described by its request head and its capability. */
export interface UploadRequest extends Omit<RelayCapability, 'bucket' | 'expiresAtSeconds'> {
  readonly sizeBytes: number | undefined;
  /** Whether the head declares a body, by a length or a transfer coding (RFC 9112 §6.3). */
  readonly hasBody: boolean;
  /** Whether the body has a content coding (RFC 9110 §8.4). */
  readonly isEncoded: boolean;
  /** Storage of originals, or the storage from which the platform fetches uploads. */
  readonly storage: 'originals' | 'uploads';
}

export interface UploadLimits extends PaceLimits {
  readonly maxUploads: number;
  readonly maxBytes: number;
  /** Maximum memory of uploads of unknown length, in bytes. */
  readonly memoryBytes: number;
  /** Maximum time of the check whether an object exists, in milliseconds. */
  readonly existsTimeoutMs: number;
  /** Interval of pace checks, in milliseconds. */
  readonly sweepIntervalMs: number;
}

interface Writers {
  readonly originals: OriginalWriter;
  /** Storage that no public route reads (contract §14). Omit to store all uploads as originals. */
  readonly uploads: OriginalWriter | undefined;
}

export interface StoredUpload {
  /** Tag of the storage; empty if it returns none. */
  readonly etag: string;
  readonly sha256?: string | undefined;
  /** Outcome of the removal of metadata, if requested. */
  readonly metadata: MetadataOutcome | undefined;
}

/** Stores uploads that clients send with a capability of the platform. */
export class UploadService {
  readonly #writers: Writers;
  readonly #limits: UploadLimits;
  readonly #stripsMetadata: boolean;
  readonly #pipeline: MediaPipeline;
  #running = 0;
  #heldBytes = 0;

  /** @param stripsMetadata default for capabilities that do not specify it */
  constructor(
    writers: Writers,
    limits: UploadLimits,
    stripsMetadata: boolean,
    pipeline: MediaPipeline,
  ) {
    this.#writers = writers;
    this.#limits = limits;
    this.#stripsMetadata = stripsMetadata;
    this.#pipeline = pipeline;
  }

  /** Running uploads and their memory, with the limits of both. */
  get usage() {
    const { maxUploads, memoryBytes: maxHeldBytes } = this.#limits;
    return { uploads: this.#running, maxUploads, heldBytes: this.#heldBytes, maxHeldBytes };
  }

  get isFull(): boolean {
    return this.#running >= this.#limits.maxUploads;
  }

  /**
   * Stores an upload, or a part of one.
   *
   * @param openBody requests the body from the client; called after all checks that need no body
   * @param signal aborts when the client disconnects; nothing is then stored
   * @throws MediaError of contract §10, `OVERLOADED` also if the CDN does not receive the purge of a stored original;
   *   or `signal.reason`
   */
  async store(
    request: UploadRequest,
    openBody: () => AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<StoredUpload> {
    const { blocks, details, meter } = this.#pipeline;
    const { key, part, replaces, sizeBytes, hasBody, isEncoded } = request;
    const writer = this.#writerOf(request);
    const isOriginal = request.storage === 'originals';
    const maxBytes = Math.min(request.maxBytes ?? Number.POSITIVE_INFINITY, this.#limits.maxBytes);
    if (part !== undefined && writer.writePart === undefined) throw new MediaError('ACCESS_DENIED');
    if (isEncoded) refuse('The upload must not have a Content-Encoding.');
    // Another process may receive the other parts.
    if (part !== undefined && request.stripsMetadata === true) {
      refuse('Metadata cannot be removed from a part of an upload.');
    }
    const needsLength = part !== undefined || !hasBody;
    if (needsLength && sizeBytes === undefined) throw new MediaError('LENGTH_REQUIRED');
    if (sizeBytes !== undefined && sizeBytes > maxBytes) throw new MediaError('PAYLOAD_TOO_LARGE');
    if (blocks?.find({ originKey: key }) !== undefined) throw blockedError();
    const leave = this.#enter(writer.memoryBytesOf(sizeBytes));
    try {
      const isNew = isOriginal && part === undefined && !replaces;
      if (isNew && (await this.#exists(key, signal))) throw new MediaError('MEDIA_EXISTS');
      const stored = await this.#receive({ ...request, maxBytes }, isNew, openBody, signal);
      const { etag, sha256, metadata } = stored;
      if (metadata !== undefined) meter.count('metadataRemovals', metadata);
      if (isOriginal && part === undefined) {
        const cdnFailure = await this.#purge(request);
        if (sha256 !== undefined) details.put({ originKey: key }, etag, 'sha256', sha256);
        if (metadata !== undefined) details.put({ originKey: key }, etag, 'removal', metadata);
        if (cdnFailure !== undefined) throw cdnFailure;
      }
      return stored;
    } catch (error) {
      if (isRefusal(error)) meter.count('metadataRemovals', 'refused');
      // After the client has disconnected, any other error is a consequence.
      signal.throwIfAborted();
      throw error;
    } finally {
      leave();
    }
  }

  #writerOf({ storage }: UploadRequest): OriginalWriter {
    const { originals, uploads = originals } = this.#writers;
    return storage === 'uploads' ? uploads : originals;
  }

  /** @throws MediaError `OVERLOADED` */
  #enter(bytes: number): () => void {
    if (this.isFull) throw overloaded(`${this.#running} uploads are running.`);
    if (bytes > 0 && this.#heldBytes + bytes > this.#limits.memoryBytes) {
      throw overloaded(`Uploads occupy ${this.#heldBytes} bytes of RELAY_MEMORY_BYTES.`);
    }
    this.#running += 1;
    this.#heldBytes += bytes;
    return () => {
      this.#running -= 1;
      this.#heldBytes -= bytes;
    };
  }

  async #exists(key: string, signal: AbortSignal): Promise<boolean> {
    const late = (): MediaError => new MediaError('ORIGIN_TIMEOUT');
    return withDeadline(this.#limits.existsTimeoutMs, signal, late, (within) =>
      this.#writers.originals.has(key, within),
    ).catch(failToStore);
  }

  async #receive(
    request: UploadRequest & { readonly maxBytes: number },
    isNew: boolean,
    openBody: () => AsyncIterable<Uint8Array>,
    client: AbortSignal,
  ): Promise<StoredUpload> {
    const limits = this.#limits;
    const { key, part, sizeBytes, contentType } = request;
    const writer = this.#writerOf(request);
    client.throwIfAborted();
    const stopping = new AbortController();
    const signal = AbortSignal.any([client, stopping.signal]);
    const body = new UploadBody(openBody(), limits, request.maxBytes, signal, this.#pipeline);
    const watching = setInterval(() => {
      const error = body.findPaceError();
      if (error !== undefined) stopping.abort(error);
    }, limits.sweepIntervalMs).unref();
    try {
      // The platform checks uploads that it fetches. Later parts contain no file header.
      const isChecked = request.storage === 'originals' && (part?.partNumber ?? 1) === 1;
      if (isChecked) await checkBeginning(contentType, body);
      const strips = request.stripsMetadata ?? this.#stripsMetadata;
      if (part === undefined || writer.writePart === undefined) {
        const cleaner = strips ? await openCleaner(body) : undefined;
        let sha256: string | undefined;
        const check = (chunks: AsyncIterable<Uint8Array>) => {
          const { blocks } = this.#pipeline;
          if (blocks === undefined) return chunks;
          const checkDigest = (digest: string): void => {
            if (blocks.isDigestBlocked(digest)) throw blockedError();
            sha256 = digest;
          };
          // The writer might not read an empty body.
          if (sizeBytes === 0) checkDigest(sha256Of(new Uint8Array()));
          return checkBody(chunks, checkDigest);
        };
        const sent = check(body);
        // Blocks apply to the bytes as sent, and to the stored bytes.
        const chunks = cleaner === undefined ? sent : check(cleanChunks(sent, cleaner));
        const etag = await writer.write(key, chunks, { sizeBytes, contentType, isNew, signal });
        const cleaned = cleaner?.hasRemoved === true ? 'removed' : 'none';
        const outcome = cleaner === undefined ? 'not-supported' : cleaned;
        return { etag, sha256, metadata: strips ? outcome : undefined };
      }
      const options = { ...part, sizeBytes: sizeBytes ?? 0, signal };
      const etag = await writer.writePart(key, body, options);
      return { etag, metadata: strips ? 'not-supported' : undefined };
    } catch (error) {
      if (!signal.aborted) return failToStore(error);
      // The client receives the reason of the stop; the log receives a failure to clean up.
      if (!isStop(error, signal)) {
        const details = { key, reason: formatCauses(error).slice(2) };
        this.#pipeline.log.warn(
          details,
          'cleaning up an aborted upload failed; a partial upload may remain',
        );
      }
      throw signal.reason;
    } finally {
      clearInterval(watching);
    }
  }

  /**
   * Purges the key. Remaining renderings in the store are harmless, since they have the tag of the old original.
   * Returns the failure to purge the CDN, which would serve the old original for a year.
   */
  async #purge({ key, replaces }: UploadRequest): Promise<MediaError | undefined> {
    const { purger, log } = this.#pipeline;
    const { storeFailure, cdnFailure } = await purger.purge(
      { kind: 'originals', originKeys: [key] },
      replaces ? { scope: 'everywhere' } : { scope: 'process', isNew: true },
    );
    if (storeFailure !== undefined) {
      const reason = formatCauses(storeFailure).slice(2);
      log.warn({ key, reason }, 'purging renderings of a replaced original from the store failed');
    }
    if (cdnFailure === undefined) return undefined;
    const reason = formatCauses(cdnFailure).slice(2);
    log.error(
      { key, reason },
      'purging a replaced original at the CDN failed; the CDN may serve the old one',
    );
    if (cdnFailure instanceof MediaError) return cdnFailure;
    return new MediaError('OVERLOADED', { cause: cdnFailure, retryAfterSeconds: 5 });
  }
}

function blockedError(): MediaError {
  return new MediaError('ACCESS_DENIED', { cause: new Error('The upload is blocked.') });
}

function isStop(error: unknown, { reason }: AbortSignal): boolean {
  return error === reason || (error instanceof Error && error.name === 'AbortError');
}

/** @throws MediaError `ORIGIN_ERROR` for errors of the storage */
function failToStore(error: unknown): never {
  throw error instanceof MediaError ? error : new MediaError('ORIGIN_ERROR', { cause: error });
}

function overloaded(message: string): MediaError {
  const cause = new Error(message);
  return new MediaError('OVERLOADED', { cause, bottleneck: 'uploads', retryAfterSeconds: 1 });
}
