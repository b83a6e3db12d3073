import { createHash } from 'node:crypto';
import { MediaError } from '../../contract/errors.ts';
import { sourceFormats } from '../../contract/image-formats.ts';
import { isDecodable } from '../../formats/containers.ts';
import { unlessAborted } from '../abort.ts';
import type { Tools } from '../meter.ts';
import { SNIFF_BYTES } from '../originals/content-sniff.ts';

export interface PaceLimits {
  /** Maximum time of waiting for `windowBytes` from the client, in milliseconds. */
  readonly windowMs: number;
  readonly windowBytes: number;
  /** Maximum time for the storage to accept a chunk, in milliseconds. */
  readonly storageTimeoutMs: number;
}

/**
 * Body of an upload, at the pace of the client or of the storage, whichever is slower. It records which of them it
 * waits for, to report the right timeout.
 */
export class UploadBody implements AsyncIterable<Uint8Array> {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #limits: PaceLimits;
  readonly #maxBytes: number;
  readonly #signal: AbortSignal;
  readonly #tools: Pick<Tools, 'clock' | 'meter'>;
  /** Chunks that were peeked at, but not forwarded yet. */
  readonly #peeked: Uint8Array[] = [];
  #isEnded = false;
  #receivedBytes = 0;
  #waitsFor: 'client' | 'storage' = 'storage';
  #sinceMs: number;
  /** Bytes received in this window, and time spent waiting for them. */
  #windowBytes = 0;
  #waitedMs = 0;

  constructor(
    source: AsyncIterable<Uint8Array>,
    limits: PaceLimits,
    maxBytes: number,
    signal: AbortSignal,
    tools: Pick<Tools, 'clock' | 'meter'>,
  ) {
    this.#source = source[Symbol.asyncIterator]();
    this.#limits = limits;
    this.#maxBytes = maxBytes;
    this.#signal = signal;
    this.#tools = tools;
    this.#sinceMs = tools.clock.nowMs();
  }

  /** Returns the first bytes without consuming them, fewer if the body ends. @throws as the body */
  async peek(isEnough: (prefix: Uint8Array) => boolean): Promise<Uint8Array> {
    let prefix = Buffer.concat(this.#peeked);
    while (!isEnough(prefix)) {
      const chunk = await this.#receive();
      if (chunk === undefined) break;
      this.#peeked.push(chunk);
      prefix = Buffer.concat([prefix, chunk]);
    }
    return prefix;
  }

  /** @throws MediaError `PAYLOAD_TOO_LARGE`; errors of the source; `signal.reason` */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    yield* this.#peeked.splice(0);
    for (;;) {
      const chunk = await this.#receive();
      if (chunk === undefined) return;
      yield chunk;
    }
  }

  /** Returns an error while the client or the storage is too slow; called at intervals. */
  findPaceError(): MediaError | undefined {
    const limits = this.#limits;
    const waitedMs = this.#tools.clock.nowMs() - this.#sinceMs;
    if (this.#waitsFor === 'storage') {
      if (waitedMs < limits.storageTimeoutMs) return undefined;
      const cause = new Error(`The storage accepted nothing for ${waitedMs} ms.`);
      return new MediaError('ORIGIN_TIMEOUT', { cause });
    }
    if (this.#waitedMs + waitedMs < limits.windowMs) return undefined;
    return new MediaError('REQUEST_TIMEOUT');
  }

  async #receive(): Promise<Uint8Array | undefined> {
    if (this.#isEnded) return undefined;
    const { clock, meter } = this.#tools;
    this.#waitsFor = 'client';
    this.#sinceMs = clock.nowMs();
    const { done, value } = await unlessAborted(this.#source.next(), this.#signal);
    const nowMs = clock.nowMs();
    this.#waitedMs += nowMs - this.#sinceMs;
    this.#waitsFor = 'storage';
    this.#sinceMs = nowMs;
    if (done === true) {
      this.#isEnded = true;
      return undefined;
    }
    this.#receivedBytes += value.length;
    meter.count('uploadedBytes', 'all', value.length);
    if (this.#receivedBytes > this.#maxBytes) throw new MediaError('PAYLOAD_TOO_LARGE');
    this.#windowBytes += value.length;
    if (this.#windowBytes >= this.#limits.windowBytes) {
      this.#windowBytes = 0;
      this.#waitedMs = 0;
    }
    return value;
  }
}

/** Forwards a body, and checks its digest before the last chunk, so that no blocked file is stored. */
export async function* checkBody(
  body: AsyncIterable<Uint8Array>,
  checkDigest: (sha256: string) => void,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  let last: Uint8Array | undefined;
  for await (const chunk of body) {
    hash.update(chunk);
    if (last !== undefined) yield last;
    last = chunk;
  }
  checkDigest(hash.digest('hex'));
  if (last !== undefined) yield last;
}

const imageTypes: ReadonlySet<string> = new Set([
  ...Object.values(sourceFormats).map(({ mimeType }) => mimeType),
  'image/heif', // the container of HEIC and AVIF
]);

/** Checks that an upload declared as a supported image begins like one. @throws MediaError `UNSUPPORTED_MEDIA_TYPE` */
export async function checkBeginning(
  contentType: string | undefined,
  body: UploadBody,
): Promise<void> {
  const [type = ''] = contentType?.split(';') ?? [];
  if (!imageTypes.has(type.trim().toLowerCase())) return;
  const prefix = await body.peek((bytes) => bytes.length >= SNIFF_BYTES || isDecodable(bytes));
  if (isDecodable(prefix)) return;
  const cause = new Error(`The upload is declared as ${contentType}, but does not begin like one.`);
  const message = 'The bytes are not the image that the content type declares.';
  refuse(message, cause);
}

export function refuse(message: string, cause?: unknown): never {
  throw new MediaError('UNSUPPORTED_MEDIA_TYPE', { message, cause });
}
