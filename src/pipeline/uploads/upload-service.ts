import { createHash } from 'node:crypto';
import { formatCauses, MediaError } from '../../contract/errors.ts';
import { sourceFormats } from '../../contract/image-formats.ts';
import type { MetadataOutcome } from '../../contract/metadata.ts';
import type { RelayCapability } from '../../contract/signing/relay-capability.ts';
import { isDecodable } from '../../formats/containers.ts';
import { withDeadline } from '../abort.ts';
import type { BlockGuard } from '../blocks/block-guard.ts';
import type { Meter } from '../meter.ts';
import { SNIFF_BYTES } from '../originals/content-sniff.ts';
import { sha256Of } from '../originals/digests.ts';
import type { FactStore } from '../originals/fact-store.ts';
import type { OriginalWriter } from '../originals/original-writer.ts';
import type { Clock, Log } from '../ports.ts';
import type { Purger } from '../results/purger.ts';
import { cleanChunks, isRefusal, openCleaner } from './metadata-removal.ts';
import { type PaceLimits, UploadBody } from './upload-body.ts';

/** An upload, as its head and its capability describe it. */
export interface UploadOrder extends Omit<RelayCapability, 'bucket' | 'expiresAtSeconds'> {
  /** Length that the head declares; `undefined`: none. */
  readonly sizeBytes: number | undefined;
  /** Whether the head declares a body, by a length or a transfer coding (RFC 9112 §6.3). */
  readonly hasBody: boolean;
  /** Whether the body has a content coding (RFC 9110 §8.4). */
  readonly isEncoded: boolean;
  /** Storage that the upload goes to: that of originals, or the one that the platform fetches uploads from. */
  readonly storage: 'originals' | 'uploads';
}

export interface UploadLimits extends PaceLimits {
  readonly maxUploads: number;
  readonly maxBytes: number;
  /** Memory of all uploads of unknown length together, in bytes. */
  readonly memoryBytes: number;
  /** Longest time for the storage to tell whether an object exists, in milliseconds. */
  readonly lookTimeoutMs: number;
  /** Interval between two checks of the pace, in milliseconds. */
  readonly sweepIntervalMs: number;
}

export interface UploadServiceParts {
  readonly blocks: BlockGuard | undefined;
  readonly facts: Pick<FactStore, 'put'>;
  readonly writer: OriginalWriter;
  /** Writer of uploads that no public route reads (contract §14); `undefined`: there is no such storage. */
  readonly uploadsWriter: OriginalWriter | undefined;
  readonly purger: Pick<Purger, 'purge'>;
  /** Whether metadata is removed from uploads whose capability does not say. */
  readonly stripsMetadata: boolean;
  readonly limits: UploadLimits;
  readonly clock: Clock;
  readonly meter: Pick<Meter, 'count'>;
  readonly log: Log;
}

/** An upload as it was stored. */
export interface StoredUpload {
  /** The storage's tag of the stored bytes; empty if the storage gives none. */
  readonly etag: string;
  /** SHA-256 of the stored bytes, hexadecimal; `undefined` unless it was checked. */
  readonly sha256?: string | undefined;
  /** Outcome of the removal of metadata; `undefined` if the upload is stored as sent on purpose. */
  readonly metadata: MetadataOutcome | undefined;
}

/** Types of images that Darkroom decodes: an upload that claims one of them must begin like one. */
const imageTypes: ReadonlySet<string> = new Set([
  ...Object.values(sourceFormats).map(({ mimeType }) => mimeType),
  'image/heif', // the container of HEIC and AVIF
]);

/** Stores originals that clients send with a capability of the platform. */
export class UploadService {
  readonly #parts: UploadServiceParts;
  #underWay = 0;
  #heldBytes = 0;

  constructor(parts: UploadServiceParts) {
    this.#parts = parts;
  }

  /** Uploads under way, memory that they hold, and the bounds of both. */
  get usage() {
    const { maxUploads, memoryBytes: maxHeldBytes } = this.#parts.limits;
    return { uploads: this.#underWay, maxUploads, heldBytes: this.#heldBytes, maxHeldBytes };
  }

  get isFull(): boolean {
    return this.#underWay >= this.#parts.limits.maxUploads;
  }

  /**
   * Stores an original, or a part of one.
   *
   * @param openBody asks the client for the body; called after all checks that need no body
   * @param signal aborts when the client has gone: nothing is left of the upload then
   * @throws MediaError of contract §10, `OVERLOADED` also for a stored original whose purge the CDN does not get;
   *   `signal.reason`
   */
  async store(
    order: UploadOrder,
    openBody: () => AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<StoredUpload> {
    const { limits, meter } = this.#parts;
    const { key, part, replaces, sizeBytes, hasBody, isEncoded } = order;
    const writer = this.#writerOf(order);
    const isOriginal = order.storage === 'originals';
    const maxBytes = Math.min(order.maxBytes ?? limits.maxBytes, limits.maxBytes);
    if (part !== undefined && writer.writePart === undefined) throw new MediaError('ACCESS_DENIED');
    if (isEncoded) {
      const message = 'The upload must not have a Content-Encoding.';
      throw new MediaError('UNSUPPORTED_MEDIA_TYPE', { message });
    }
    if (part !== undefined && order.stripsMetadata === true) {
      // Another process may receive the parts before and after.
      const message = 'Metadata cannot be removed from a part of an upload.';
      throw new MediaError('UNSUPPORTED_MEDIA_TYPE', { message });
    }
    const needsLength = part !== undefined || !hasBody;
    if (needsLength && sizeBytes === undefined) throw new MediaError('LENGTH_REQUIRED');
    if (sizeBytes !== undefined && sizeBytes > maxBytes) throw new MediaError('PAYLOAD_TOO_LARGE');
    if (this.#parts.blocks?.find({ originKey: key }) !== undefined) throw blocked();
    const leave = this.#enter(writer.heldBytesOf(sizeBytes));
    try {
      const isNew = isOriginal && part === undefined && !replaces;
      if (isNew && (await this.#isThere(key, signal))) throw new MediaError('MEDIA_EXISTS');
      const stored = await this.#receive({ ...order, maxBytes }, isNew, openBody, signal);
      const { etag, sha256, metadata } = stored;
      if (metadata !== undefined) meter.count('metadataRemovals', metadata);
      if (isOriginal && part === undefined) {
        const cdnFailure = await this.#forget(order);
        const { facts } = this.#parts;
        if (sha256 !== undefined) facts.put({ originKey: key }, etag, 'sha256', sha256);
        if (metadata !== undefined) facts.put({ originKey: key }, etag, 'removal', metadata);
        if (cdnFailure !== undefined) throw cdnFailure;
      }
      return stored;
    } catch (error) {
      if (isRefusal(error)) meter.count('metadataRemovals', 'refused');
      // The client has gone: its reason comes before any other failure.
      signal.throwIfAborted();
      throw error;
    } finally {
      leave();
    }
  }

  #writerOf({ storage }: UploadOrder): OriginalWriter {
    const { writer, uploadsWriter } = this.#parts;
    return storage === 'uploads' && uploadsWriter !== undefined ? uploadsWriter : writer;
  }

  /** @throws MediaError `OVERLOADED` */
  #enter(bytes: number): () => void {
    const { limits } = this.#parts;
    if (this.isFull) throw overloaded(`${this.#underWay} uploads are under way.`);
    if (bytes > 0 && this.#heldBytes + bytes > limits.memoryBytes) {
      throw overloaded(`Parts of uploads hold ${this.#heldBytes} bytes of RELAY_MEMORY_BYTES.`);
    }
    this.#underWay += 1;
    this.#heldBytes += bytes;
    return () => {
      this.#underWay -= 1;
      this.#heldBytes -= bytes;
    };
  }

  async #isThere(key: string, signal: AbortSignal): Promise<boolean> {
    const { writer, limits } = this.#parts;
    const late = (): MediaError => new MediaError('ORIGIN_TIMEOUT');
    return withDeadline(limits.lookTimeoutMs, signal, late, (within) =>
      writer.has(key, within),
    ).catch(failToStore);
  }

  async #receive(
    order: UploadOrder & { readonly maxBytes: number },
    isNew: boolean,
    openBody: () => AsyncIterable<Uint8Array>,
    client: AbortSignal,
  ): Promise<StoredUpload> {
    const { limits, clock, meter, log, blocks } = this.#parts;
    const { key, part, sizeBytes, contentType } = order;
    const writer = this.#writerOf(order);
    client.throwIfAborted();
    const stopping = new AbortController();
    const signal = AbortSignal.any([client, stopping.signal]);
    const body = new UploadBody(openBody(), {
      limits,
      maxBytes: order.maxBytes,
      clock,
      onReceived: (bytes) => meter.count('uploadedBytes', 'all', bytes),
      signal,
    });
    const watching = setInterval(() => {
      const fault = body.findFault();
      if (fault !== undefined) stopping.abort(fault);
    }, limits.sweepIntervalMs).unref();
    try {
      await checkBeginning(order, body);
      const strips = order.stripsMetadata ?? this.#parts.stripsMetadata;
      if (part === undefined || writer.writePart === undefined) {
        const cleaner = strips ? await openCleaner(body) : undefined;
        let sha256: string | undefined;
        const check = (chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> => {
          if (blocks === undefined) return chunks;
          const judge = (digest: string): void => {
            if (blocks.isDigestBlocked(digest)) throw blocked();
            sha256 = digest;
          };
          // A writer need not ask for a body of no bytes.
          if (sizeBytes === 0) judge(sha256Of(new Uint8Array()));
          return judgeBody(chunks, judge);
        };
        const sent = check(body);
        // Blocks are of the bytes as sent, and of those that are stored.
        const chunks = cleaner === undefined ? sent : check(cleanChunks(sent, cleaner));
        const etag = await writer.write(key, chunks, { sizeBytes, contentType, isNew, signal });
        const cleaned = cleaner?.hasRemoved === true ? 'removed' : 'none';
        const outcome = cleaner === undefined ? 'not-supported' : cleaned;
        return { etag, sha256, metadata: strips ? outcome : undefined };
      }
      const partSize = sizeBytes ?? 0;
      const etag = await writer.writePart(key, body, { ...part, sizeBytes: partSize, signal });
      return { etag, metadata: strips ? 'not-supported' : undefined };
    } catch (error) {
      if (!signal.aborted) return failToStore(error);
      // The client learns why the upload was stopped; a failure to clean up is for the operator.
      if (!isStop(error, signal)) {
        const details = { key, reason: formatCauses(error).slice(2) };
        log.warn(details, 'an upload that was stopped may have left something behind');
      }
      throw signal.reason;
    } finally {
      clearInterval(watching);
    }
  }

  /**
   * Forgets what is known of the key. Renderings that stay in the store have the tag of the old original: harmless.
   *
   * @returns the failure to pass the purge on to the CDN, which would serve the old original for a year
   */
  async #forget({ key, replaces }: UploadOrder): Promise<MediaError | undefined> {
    const { purger, log } = this.#parts;
    const { storeFailure, cdnFailure } = await purger.purge(
      { kind: 'originals', originKeys: [key] },
      replaces ? { scope: 'everywhere' } : { scope: 'process', isNew: true },
    );
    if (storeFailure !== undefined) {
      const reason = formatCauses(storeFailure).slice(2);
      log.warn({ key, reason }, 'renderings of an original that was replaced stay in the store');
    }
    if (cdnFailure === undefined) return undefined;
    const reason = formatCauses(cdnFailure).slice(2);
    log.error({ key, reason }, 'the CDN may serve an original that was replaced');
    if (cdnFailure instanceof MediaError) return cdnFailure;
    return new MediaError('OVERLOADED', { cause: cdnFailure, retryAfterSeconds: 5 });
  }
}

/** Passes a body on, its last chunk once the digest is judged, so that nothing of what is blocked is stored. */
async function* judgeBody(
  body: AsyncIterable<Uint8Array>,
  judge: (sha256: string) => void,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  let held: Uint8Array | undefined;
  for await (const chunk of body) {
    hash.update(chunk);
    if (held !== undefined) yield held;
    held = chunk;
  }
  judge(hash.digest('hex'));
  if (held !== undefined) yield held;
}

/** Creates the refusal of what is blocked, hidden or not (contract §15). */
function blocked(): MediaError {
  return new MediaError('ACCESS_DENIED', { cause: new Error('The upload is blocked.') });
}

/**
 * Checks the first bytes of an upload that claims to be an image. Later parts of a multipart upload are not checked:
 * they do not contain the file header.
 *
 * @throws MediaError `UNSUPPORTED_MEDIA_TYPE` unless Darkroom decodes such an image
 */
async function checkBeginning(order: UploadOrder, body: UploadBody): Promise<void> {
  const { contentType, part } = order;
  // The platform checks what it fetches.
  if (order.storage === 'uploads') return;
  const [type = ''] = contentType?.split(';') ?? [];
  if (!imageTypes.has(type.trim().toLowerCase())) return;
  if (part !== undefined && part.partNumber !== 1) return;
  const prefix = await body.peek((bytes) => bytes.length >= SNIFF_BYTES || isDecodable(bytes));
  if (isDecodable(prefix)) return;
  const cause = new Error(`The upload is said to be ${contentType}, and does not begin like one.`);
  const message = 'The bytes are not the image that the content type declares.';
  throw new MediaError('UNSUPPORTED_MEDIA_TYPE', { cause, message });
}

/** Whether a write has ended because of its signal. */
function isStop(error: unknown, { reason }: AbortSignal): boolean {
  return error === reason || (error instanceof Error && error.name === 'AbortError');
}

/** @throws MediaError: `ORIGIN_ERROR` for any error of the storage */
function failToStore(error: unknown): never {
  throw error instanceof MediaError ? error : new MediaError('ORIGIN_ERROR', { cause: error });
}

function overloaded(message: string): MediaError {
  const cause = new Error(message);
  return new MediaError('OVERLOADED', { cause, bottleneck: 'uploads', retryAfterSeconds: 1 });
}
