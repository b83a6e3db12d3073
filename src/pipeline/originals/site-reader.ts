import { createHash } from 'node:crypto';
import { addAbortSignal } from 'node:stream';
import type { Span } from '@opentelemetry/api';
import { MediaError } from '../../contract/errors.ts';
import { isDecodable } from '../../formats/read-image-facts.ts';
import { withDeadline } from '../abort.ts';
import type { CachedOriginal } from '../ports.ts';
import type { RequestTrace } from '../request-trace.ts';
import type { FlightControls } from '../single-flight.ts';
import { siteError } from '../site-failure.ts';
import { SNIFF_BYTES } from './content-sniff.ts';
import type { Reservation } from './memory-budget.ts';
import {
  type Approach,
  type HeldOriginal,
  holdCached,
  type IdentifiedOriginal,
  identityOf,
  type OpenedOriginal,
  type ReaderParts,
  releaseAfter,
} from './original-reader.ts';
import { siteBodyError } from './site-stream.ts';
import type { ExternalMedia, SiteContent, SiteResponse, SiteValidators } from './sites.ts';

/** What an original of another site is read with. */
export interface SiteReaderParts extends ReaderParts {
  /** `undefined`: nothing of other sites is served. */
  readonly external: ExternalMedia | undefined;
}

/** Bytes that memory is taken for at first; a length that a site announces is no reason to take more. */
const FIRST_BYTES = 64 * 1024;

/**
 * One original of another site, for all requests that need it at the same time. What identifies it is a digest of its
 * bytes, since a site's own words may mean nothing: so it is fetched whole, unless the site says that what was fetched
 * before still holds.
 */
export class SiteReader implements OpenedOriginal {
  readonly #parts: SiteReaderParts;
  readonly #originKey: string;
  readonly #url: string;
  readonly #flight: FlightControls;
  #identified: Promise<IdentifiedOriginal> | undefined;
  #held: Promise<HeldOriginal> | undefined;
  /** Of the bytes that were identified. */
  #etag: string | undefined;

  constructor(parts: SiteReaderParts, originKey: string, url: string, flight: FlightControls) {
    this.#parts = parts;
    this.#originKey = originKey;
    this.#url = url;
    this.#flight = flight;
    releaseAfter(flight, () => this.#held);
  }

  async identify(approach: Approach, trace: RequestTrace): Promise<IdentifiedOriginal> {
    const { metadata } = this.#parts;
    const fresh = this.#identified === undefined ? metadata.findFresh(this.#originKey) : undefined;
    if (fresh !== undefined) {
      this.#etag = fresh.etag;
      return { identity: fresh, wasAsked: false };
    }
    this.#checkFailure();
    return trace.time('origin', (visit) => {
      visit.span?.setAttributes({ 'darkroom.origin.part': 'state' });
      this.#identified ??= trace.show('fetch', (span) => this.#identify(approach, span));
      return this.#identified;
    });
  }

  get isInMemory(): boolean {
    return this.#held !== undefined || this.#findCached() !== undefined;
  }

  /** A site is asked once: a part first would cost it, and the client, another request. */
  async peek(): Promise<undefined> {
    return undefined;
  }

  read(): Promise<HeldOriginal> {
    this.#held ??= this.#readAgain();
    return this.#held;
  }

  async #identify(approach: Approach, span: Span | undefined): Promise<IdentifiedOriginal> {
    const { metadata, cache } = this.#parts;
    const last = metadata.findOfSite(this.#originKey);
    // That it is unchanged helps where a rendering of it may be at hand, or its bytes are.
    const mayBeUnchanged =
      approach !== 'whole' || cache.get(this.#originKey)?.etag === last?.identity.etag;
    const response = await this.#ask(mayBeUnchanged ? last?.site.validators : undefined);
    span?.setAttributes({ 'darkroom.fetch.unchanged': response.kind === 'unchanged' });
    if (response.kind === 'content') {
      this.#held = this.#hold(response);
      const held = await this.#held;
      span?.setAttributes({ 'darkroom.bytes': held.bytes.byteLength });
      return { identity: identityOf(held), wasAsked: true };
    }
    // The site says so of what it was asked about alone.
    if (last === undefined) throw siteError('Nothing was asked about.', { reason: 'response' });
    const { identity, site } = last;
    this.#etag = identity.etag;
    if (!this.#flight.isRetired()) {
      metadata.noteFound(this.#originKey, identity, { ...site, freshForMs: response.freshForMs });
    }
    return { identity, wasAsked: true };
  }

  #findCached(): CachedOriginal | undefined {
    const cached = this.#parts.cache.get(this.#originKey);
    return cached?.etag === this.#etag ? cached : undefined;
  }

  /** The bytes of what was identified without them; or of what the site has now. */
  async #readAgain(): Promise<HeldOriginal> {
    this.#flight.signal.throwIfAborted();
    const cached = holdCached(this.#parts, this.#findCached());
    if (cached !== undefined) return cached;
    this.#checkFailure();
    const response = await this.#ask(undefined);
    if (response.kind === 'content') return this.#hold(response);
    throw siteError('Nothing was asked about.', { reason: 'response' });
  }

  async #hold(content: SiteContent): Promise<HeldOriginal> {
    const { budget, cache, metadata } = this.#parts;
    const reservation = budget.reserve(0);
    try {
      const bytes = await this.#collect(content, reservation);
      const etag = createHash('sha256').update(bytes).digest('base64url');
      const { lastModified, validators, freshForMs } = content;
      const original = { etag, lastModified, bytes };
      this.#etag = etag;
      if (!this.#flight.isRetired()) {
        metadata.noteFound(this.#originKey, identityOf(original), { validators, freshForMs });
        cache.set(this.#originKey, original);
      }
      return { ...reservation, ...original };
    } catch (error) {
      content.body.destroy();
      reservation.release();
      this.#noteError(error);
      throw error;
    }
  }

  /** All bytes of a body; memory is taken as they come. */
  async #collect({ body, sizeBytes }: SiteContent, reservation: Reservation): Promise<Buffer> {
    const { maxOriginalBytes } = this.#parts.access.limits;
    const { wholeBodyTimeoutMs } = this.#external.limits;
    const checkSize = (count: number): void => {
      if (count <= maxOriginalBytes) return;
      const cause = new Error(`${count} bytes or more, at most ${maxOriginalBytes}`);
      throw new MediaError('MEDIA_TOO_LARGE', { cause });
    };
    checkSize(sizeBytes ?? 0);
    const onTimeout = (): MediaError =>
      siteError(`The body took longer than ${wholeBodyTimeoutMs} ms.`, { reason: 'time' });
    return withDeadline(wholeBodyTimeoutMs, this.#flight.signal, onTimeout, async (within) => {
      addAbortSignal(within, body);
      let bytes = Buffer.alloc(0);
      let received = 0;
      let isJudged = false;
      try {
        for await (const chunk of body as AsyncIterable<Buffer>) {
          const count = received + chunk.length;
          checkSize(count);
          if (count > bytes.length) bytes = grow(bytes, received, count, reservation);
          chunk.copy(bytes, received);
          received = count;
          if (isJudged || received < SNIFF_BYTES) continue;
          isJudged = true;
          // The rest of what is no image need not be fetched to know that.
          if (!isDecodable(bytes.subarray(0, received))) {
            throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
          }
        }
      } catch (error) {
        if (within.aborted) throw within.reason;
        if (error instanceof MediaError) throw error;
        throw siteBodyError(error);
      }
      within.throwIfAborted();
      if (sizeBytes !== undefined && received !== sizeBytes) {
        const message = `${sizeBytes} bytes were announced, ${received} came.`;
        throw siteError(message, { reason: 'response' });
      }
      // What is kept is held by its length alone.
      return received === bytes.length ? bytes : Buffer.from(bytes.subarray(0, received));
    });
  }

  async #ask(known: SiteValidators | undefined): Promise<SiteResponse> {
    const { sites } = this.#external;
    const { signal } = this.#flight;
    try {
      return await sites.open({ url: this.#url, signal, known });
    } catch (error) {
      this.#noteError(error);
      throw error;
    }
  }

  get #external(): ExternalMedia {
    const { external } = this.#parts;
    if (external === undefined) throw new Error('Nothing of other sites is served.');
    return external;
  }

  /** @throws MediaError if the site has failed for this URL lately */
  #checkFailure(): void {
    const failure = this.#parts.metadata.findFailure(this.#originKey);
    if (failure !== undefined) throw failure;
  }

  #noteError(error: unknown): void {
    if (this.#flight.isRetired()) return;
    this.#parts.metadata.noteError(this.#originKey, error);
  }
}

/** Makes room for more bytes, twice as much as there was. */
function grow(
  bytes: Buffer,
  received: number,
  count: number,
  reservation: Reservation,
): Buffer<ArrayBuffer> {
  const capacity = Math.max(FIRST_BYTES, count, 2 * bytes.length);
  reservation.grow(capacity);
  const larger = Buffer.allocUnsafeSlow(capacity);
  bytes.copy(larger, 0, 0, received);
  return larger;
}
