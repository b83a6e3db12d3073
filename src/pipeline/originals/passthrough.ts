import { Readable } from 'node:stream';
import { MediaError } from '../../contract/errors.ts';
import { type MediaRequest, resultKey } from '../../contract/media-request.ts';
import { PIPELINE_RELEASE } from '../../contract/pipeline-release.ts';
import type { OriginObject } from '../ports.ts';
import { validatorsOf } from '../validators.ts';
import { SNIFF_BYTES, sniffContentType } from './content-sniff.ts';
import type { PassthroughMedia, PassthroughOptions } from './passthrough-media.ts';
import {
  type OriginAccess,
  type OriginLimits,
  openOriginal,
  originErrorFrom,
  readPrefix,
  takeFirst,
  withFirstByteDeadline,
} from './read-original.ts';
import type { SitePassthrough } from './site-passthrough.ts';

/** Serves attachments as they are (contract §2, external): streamed, never held in memory or kept. */
export class PassthroughService {
  readonly #access: OriginAccess;
  readonly #sites: SitePassthrough | undefined;

  /** @param sites for what is on other sites; `undefined`: nothing is */
  constructor(access: OriginAccess, sites?: SitePassthrough) {
    this.#access = access;
    this.#sites = sites;
  }

  /**
   * Opens an original; the caller must `stream` or `discard` it.
   *
   * @throws MediaError `UNKNOWN_MEDIA`, `ORIGIN_ERROR`, `ORIGIN_TIMEOUT`, `OVERLOADED`
   */
  async open(request: MediaRequest, options: PassthroughOptions): Promise<PassthroughMedia> {
    const { signal, trace, isWhole } = options;
    const { originKey, url } = request;
    if (url !== undefined) {
      if (this.#sites === undefined) throw new Error('There are no other sites.');
      return this.#sites.open(request, url, options);
    }
    trace.outcome = { kind: 'bypass' };
    return trace.time('origin', async (visit) => {
      const access = this.#access;
      const object = isWhole
        ? await openOriginal(access, originKey, signal)
        : await readPrefix(access, originKey, SNIFF_BYTES, signal);
      const body = 'body' in object ? object.body : undefined;
      const prefix =
        'body' in object
          ? await peekOriginal(object, SNIFF_BYTES, access.limits, signal)
          : object.bytes;
      const { sizeBytes, etag } = object;
      visit.span?.setAttributes({
        'darkroom.origin.part': isWhole ? 'body' : 'state',
        'darkroom.bytes': sizeBytes,
      });
      return {
        validators: validatorsOf(object, resultKey(request), PIPELINE_RELEASE),
        sizeBytes,
        contentType: await sniffContentType(prefix),
        hasRanges: true,
        discard: () => body?.destroy(),
        stream: async (first, last = sizeBytes - 1) => {
          if (body !== undefined && first === 0 && last >= sizeBytes - 1) return body;
          body?.destroy();
          return last < prefix.length
            ? Readable.from([prefix.subarray(first, last + 1)])
            : trace.time('origin', () => this.#openPart(originKey, etag, { first, last }, signal));
        },
      };
    });
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
    return await withFirstByteDeadline(limits, signal, async () => {
      const least = Math.min(count, sizeBytes);
      const prefix = await takeFirst(body, least);
      if (prefix.length < least) throw new Error('The body ended early.');
      if (prefix.length > 0) body.unshift(prefix);
      return prefix.subarray(0, least);
    });
  } catch (error) {
    body.destroy();
    throw originErrorFrom(error, signal);
  }
}
