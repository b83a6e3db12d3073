import type { MediaRequest } from '../../contract/media-request.ts';
import type { Clock } from '../ports.ts';
import { SingleFlight } from '../single-flight.ts';
import { type OpenedOriginal, OriginalReader } from './original-reader.ts';
import { SiteReader, type SiteReaderParts } from './site-reader.ts';

/** What originals are read with. */
export interface OriginalsParts extends SiteReaderParts {
  readonly clock: Clock;
}

/** Which original it is, and where: on another site, if it has a URL. */
export type OriginalPlace = Pick<MediaRequest, 'originKey' | 'url'>;

/** How old the work on an original may be for another request to join it, in milliseconds. */
const MAX_FLIGHT_AGE_MS = 5_000;

/** Originals, shared: requests for one at the same time, in whatever sizes, cause one read together. */
export class Originals {
  readonly #parts: OriginalsParts;
  readonly #flights = new SingleFlight<OpenedOriginal>();

  constructor(parts: OriginalsParts) {
    this.#parts = parts;
  }

  /** Opens an original; its bytes are held until the signal aborts. */
  open({ originKey, url }: OriginalPlace, signal: AbortSignal): OpenedOriginal {
    // What was begun long ago is not joined: what it has found may be out of date. Another site is not asked so often.
    const period =
      url === undefined ? Math.floor(this.#parts.clock.nowMs() / MAX_FLIGHT_AGE_MS) : '';
    const { work, leave } = this.#flights.join(`${period} ${originKey}`, (flight) =>
      url === undefined
        ? new OriginalReader(this.#parts, originKey, flight)
        : new SiteReader(this.#parts, originKey, url, flight),
    );
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
    return work;
  }

  /**
   * Forgets that there is no such original: it is asked for anew, and no more requests join the reads of now.
   *
   * @returns whether it is one that was never seen: then nothing else is known of it
   */
  forgetMissing(originKey: string): boolean {
    const { metadata } = this.#parts;
    const isNew = metadata.find(originKey) === undefined;
    metadata.forget(originKey);
    this.#retire((key) => key === originKey);
    return isNew;
  }

  /** Forgets the originals whose keys fit: they are asked for anew, and no more requests join the reads of now. */
  purge(fits: (originKey: string) => boolean): void {
    this.#retire(fits);
    this.#parts.metadata.purge(fits);
    this.#parts.cache.deleteWhere(fits);
  }

  #retire(fits: (originKey: string) => boolean): void {
    this.#flights.retire((flightKey) => fits(flightKey.slice(flightKey.indexOf(' ') + 1)));
  }
}
