import { once } from 'node:events';
import { Readable } from 'node:stream';
import { MediaError } from '../../contract/errors.ts';
import { type MediaRequest, resultKey } from '../../contract/media-request.ts';
import { PIPELINE_RELEASE } from '../../contract/pipeline-release.ts';
import type { OriginObject } from '../ports.ts';
import type { RequestTrace } from '../request-trace.ts';
import { type Validators, validatorsOf } from '../validators.ts';
import { SNIFF_BYTES, sniffContentType } from './content-sniff.ts';
import {
  type OriginAccess,
  type OriginLimits,
  openOriginal,
  originErrorFrom,
  readPrefix,
  withFirstByteDeadline,
} from './read-original.ts';

/** An original, to be sent out byte for byte. */
export interface PassthroughMedia {
  readonly validators: Validators;
  readonly sizeBytes: number;
  /** Told from its first bytes. */
  readonly contentType: string;
  /**
   * The bytes `first` to `last`, both included; the receiver's pace is the origin's pace.
   *
   * @throws MediaError as `Origin.read` does
   */
  readonly stream: (first: number, last: number) => Promise<Readable>;
  /** Lets go of the origin without taking a byte. */
  readonly discard: () => void;
}

/** What one request brings along. */
export interface PassthroughOptions {
  /** Ends the reading when the client has gone. */
  readonly signal: AbortSignal;
  readonly trace: RequestTrace;
  /**
   * Whether the whole body is likely to be sent. If not (a HEAD, a range, a condition), only the
   * first bytes are read at first: enough to respond, and no transfer has to be broken off.
   */
  readonly isWhole: boolean;
}

/** Serves attachments as they are (contract §2, external): streamed, never held in memory or kept. */
export class PassthroughService {
  readonly #access: OriginAccess;

  constructor(access: OriginAccess) {
    this.#access = access;
  }

  /**
   * Opens an original; the caller must `stream` or `discard` it.
   *
   * @throws MediaError `UNKNOWN_MEDIA`, `ORIGIN_ERROR`, `ORIGIN_TIMEOUT`, `OVERLOADED`
   */
  async open(request: MediaRequest, options: PassthroughOptions): Promise<PassthroughMedia> {
    const { signal, trace, isWhole } = options;
    const { originKey } = request;
    trace.outcome = { kind: 'bypass' };
    return trace.time('origin', async (visit) => {
      const { object, prefix, body } = isWhole
        ? await this.#openWhole(originKey, signal)
        : await this.#openPrefix(originKey, signal);
      const { sizeBytes, etag } = object;
      visit.note({ part: isWhole ? 'body' : 'state', bytes: sizeBytes });
      return {
        validators: validatorsOf(object, resultKey(request), PIPELINE_RELEASE),
        sizeBytes,
        contentType: await sniffContentType(prefix),
        discard: () => body?.destroy(),
        stream: async (first, last) => {
          if (body !== undefined && first === 0 && last >= sizeBytes - 1) return body;
          body?.destroy();
          return last < prefix.length
            ? Readable.from([prefix.subarray(first, last + 1)])
            : trace.time('origin', () => this.#openPart(originKey, etag, { first, last }, signal));
        },
      };
    });
  }

  async #openWhole(key: string, signal: AbortSignal) {
    const object = await openOriginal(this.#access, key, signal);
    const prefix = await peekOriginal(object, SNIFF_BYTES, this.#access.limits, signal);
    return { object, prefix, body: object.body };
  }

  async #openPrefix(key: string, signal: AbortSignal) {
    const object = await readPrefix(this.#access, key, SNIFF_BYTES, signal);
    return { object, prefix: object.bytes, body: undefined };
  }

  /** A part of the very object whose first bytes were seen. */
  async #openPart(
    key: string,
    etag: string,
    range: { readonly first: number; readonly last: number },
    signal: AbortSignal,
  ): Promise<Readable> {
    const part = await openOriginal(this.#access, key, signal, range);
    if (part.etag !== etag) {
      part.body.destroy();
      throw new MediaError('ORIGIN_ERROR', {
        cause: new Error('The original was replaced while it was being read.'),
      });
    }
    // A failure that comes before the first byte can still be reported by a status.
    await peekOriginal(part, 1, this.#access.limits, signal);
    return part.body;
  }
}

/**
 * Looks at the first bytes of an object, within the first-byte deadline, without taking them out of
 * its body.
 *
 * @param count how many bytes, at most; fewer come back only where the object is shorter
 * @throws MediaError `ORIGIN_ERROR` if the transfer fails or ends before, `ORIGIN_TIMEOUT`
 */
export async function peekOriginal(
  { body, sizeBytes }: OriginObject,
  count: number,
  limits: OriginLimits,
  signal: AbortSignal,
): Promise<Uint8Array> {
  try {
    return await withFirstByteDeadline(limits, signal, () =>
      peek(body, Math.min(count, sizeBytes)),
    );
  } catch (error) {
    body.destroy();
    throw originErrorFrom(error, signal);
  }
}

async function peek(body: Readable, count: number): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  while (length < count) {
    const chunk: Buffer | null = body.read();
    if (chunk === null) {
      await waitForMore(body);
    } else {
      chunks.push(chunk);
      length += chunk.length;
    }
  }
  const prefix = Buffer.concat(chunks);
  if (prefix.length > 0) body.unshift(prefix);
  return prefix.subarray(0, count);
}

/** @throws Error if no more bytes will come */
async function waitForMore(body: Readable): Promise<void> {
  if (body.errored) throw body.errored;
  if (body.readableEnded || body.destroyed) throw new Error('The body ended early.');
  const settled = new AbortController();
  const { signal } = settled;
  try {
    await Promise.race(['readable', 'end', 'close'].map((event) => once(body, event, { signal })));
  } finally {
    settled.abort();
  }
}
