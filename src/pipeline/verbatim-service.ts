import type { Readable } from 'node:stream';
import { MediaError } from '../media/errors.ts';
import { type MediaRequest, resultKey } from '../media/media-request.ts';
import { SNIFF_BYTES, sniffContentType } from './content-sniff.ts';
import { type OriginLimits, openOriginal, peekOriginal } from './original.ts';
import type { Origin } from './ports.ts';
import type { RequestTrace } from './request-trace.ts';
import { formatEtag, type Validators } from './validators.ts';

/** An original, opened, to be sent out byte for byte. */
export interface VerbatimMedia {
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

/** Serves attachments as they are (spec §2, external): streamed, never held in memory or kept. */
export class VerbatimService {
  readonly #origin: Origin;
  readonly #limits: OriginLimits;

  constructor(origin: Origin, limits: OriginLimits) {
    this.#origin = origin;
    this.#limits = limits;
  }

  /**
   * Opens an original; the caller must `stream` or `discard` it.
   *
   * @param signal ends the reading when the client has gone
   * @throws MediaError `UNKNOWN_MEDIA`, `ORIGIN_ERROR`, `ORIGIN_TIMEOUT`
   */
  async open(
    request: MediaRequest,
    { signal, trace }: { readonly signal: AbortSignal; readonly trace: RequestTrace },
  ): Promise<VerbatimMedia> {
    trace.outcome = { kind: 'bypass' };
    const { object, contentType } = await trace.time('origin', async () => {
      const opened = await openOriginal(this.#origin, request.originKey, this.#limits, signal);
      const prefix = await peekOriginal(opened, SNIFF_BYTES, this.#limits, signal);
      return { object: opened, contentType: await sniffContentType(prefix) };
    });
    const { sizeBytes, etag, lastModified, body } = object;

    const stream = async (first: number, last: number): Promise<Readable> => {
      if (first === 0 && last >= sizeBytes - 1) return body;
      body.destroy();
      const part = await openOriginal(this.#origin, request.originKey, this.#limits, signal, {
        first,
        last,
      });
      if (part.etag === etag) {
        // A failure that comes before the first byte can still be told by a status.
        await peekOriginal(part, 1, this.#limits, signal);
        return part.body;
      }
      part.body.destroy();
      throw new MediaError('ORIGIN_ERROR', {
        cause: new Error('The original was replaced while it was being read.'),
      });
    };
    return {
      validators: { etag: formatEtag(etag, resultKey(request)), lastModified },
      sizeBytes,
      contentType,
      stream,
      discard: () => body.destroy(),
    };
  }
}
