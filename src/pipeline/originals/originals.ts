import { MediaError } from '../../contract/errors.ts';
import { unlessAborted } from '../abort.ts';
import { deleteWhere } from '../memory-cache.ts';
import type { OriginalIdentity } from '../ports.ts';
import { type FlightControls, SingleFlight } from '../single-flight.ts';
import type { OriginalName } from './backend.ts';
import { BackgroundHashes } from './background-hashes.ts';
import { isDigest, sha256Of } from './digests.ts';
import { type LoadedOriginal, noteDigest } from './load-original.ts';
import { type FlightParts, OriginalFlight } from './original-flight.ts';

/** State of an original whose bytes were checked; `sha256` in hexadecimal digits, if it is known. */
export interface CheckedOriginal extends OriginalIdentity {
  readonly sha256?: string | undefined;
}

/** Originals, shared: concurrent requests for the same original, in whatever sizes, cause one read. */
export class Originals {
  readonly #parts: FlightParts;
  readonly #flights = new SingleFlight<OriginalFlight>((flight) => flight.isJoinable);
  /** Work under way, also that which can no longer be joined. */
  readonly #underWay = new Set<OriginalFlight>();

  /** Hashes what is too large to be read before it is sent. */
  readonly hashes: BackgroundHashes;

  constructor(parts: FlightParts) {
    this.#parts = parts;
    this.hashes = new BackgroundHashes(parts.facts, this.begin.bind(this), parts.closing);
  }

  /** Joins the work on an original, or begins it; `leave` must be called. */
  join(name: OriginalName) {
    return this.#flights.join(name.originKey, (controls) => this.begin(name, controls));
  }

  /** Begins work on an original that no request joins here; the work is over when its flight is. */
  begin(name: OriginalName, controls: FlightControls): OriginalFlight {
    const flight = new OriginalFlight(this.#parts, name, controls);
    this.#underWay.add(flight);
    flight.signal.addEventListener('abort', () => this.#underWay.delete(flight), { once: true });
    return flight;
  }

  /** Invalidates the work under way on originals whose keys fit. */
  invalidateWhere(fits: (originKey: string) => boolean): void {
    for (const flight of this.#underWay) if (fits(flight.originKey)) flight.invalidate();
  }

  /** The same, and forgets what is in memory of these originals. */
  purge(fits: (originKey: string) => boolean): void {
    this.invalidateWhere(fits);
    deleteWhere(this.#parts.cache, fits);
  }

  /**
   * Checks the bytes of a state against the blocks by SHA-256. An original whose digest is unknown is read whole; one that
   * is too large for that passes, and is hashed in the background.
   *
   * @returns the state whose bytes were checked: another one if the original was replaced meanwhile
   * @throws MediaError `UNAVAILABLE`, or `UNKNOWN_MEDIA` where the block is hidden; of the source; or `signal.reason`
   */
  async checkBytes(
    flight: OriginalFlight,
    state: OriginalIdentity | LoadedOriginal,
    signal: AbortSignal,
  ): Promise<CheckedOriginal> {
    const { blocks } = this.#parts;
    if (blocks?.judgesBytes !== true) return state;
    const checked = await unlessAborted(this.#findDigest(flight, state), signal);
    blocks.checkDigest(checked.sha256);
    return checked;
  }

  /**
   * Finds or computes the digest of a state; an original that is too large is hashed in the background.
   *
   * @returns the state whose bytes were hashed: another one if the original was replaced meanwhile
   */
  async #findDigest(
    flight: OriginalFlight,
    state: OriginalIdentity | LoadedOriginal,
  ): Promise<CheckedOriginal> {
    const { etag, lastModified } = state;
    const { facts } = this.#parts;
    const { backend, signal } = flight;
    const known = await this.#findKnownDigest(flight, state);
    if (known !== undefined) return { etag, lastModified, sha256: known };
    try {
      const loaded = await flight.load();
      const identity = { etag: loaded.etag, lastModified: loaded.lastModified };
      const isLarge =
        'reader' in loaded &&
        (loaded.reader.sizeBytes > backend.maxOriginalBytes || loaded.reader.isCut);
      if (!isLarge) {
        const sha256 = 'bytes' in loaded ? sha256Of(loaded.bytes) : await loaded.reader.hash();
        noteDigest(facts, flight, loaded.etag, sha256);
        return { ...identity, sha256 };
      }
      if (backend.isExternal) {
        const sha256 = await facts.find(flight, loaded.etag, 'sha256', signal);
        // Not before the poster is sent: a blocked digest begins the work anew, for ever if the site changes its tags.
        const hash = (): void => this.hashes.hashSoon(flight);
        if (sha256 === undefined) signal.addEventListener('abort', hash, { once: true });
        return { ...identity, sha256 };
      }
      this.hashes.hashSoon(flight);
      return identity;
    } catch (error) {
      if (!(error instanceof MediaError && error.code === 'MEDIA_TOO_LARGE')) throw error;
    }
    this.hashes.hashSoon(flight);
    return { etag, lastModified };
  }

  /** Returns what is known of a state without reading the original. */
  async #findKnownDigest(
    flight: OriginalFlight,
    state: OriginalIdentity | LoadedOriginal,
  ): Promise<string | undefined> {
    const { facts } = this.#parts;
    const { etag } = state;
    if (isDigest(flight.backend, etag)) {
      const sha256 = Buffer.from(etag, 'base64url').toString('hex');
      noteDigest(facts, flight, etag, sha256);
      return sha256;
    }
    // Of another site's video, each body that is rendered is checked itself.
    if (flight.backend.isExternal && 'reader' in state) return undefined;
    return facts.find(flight, etag, 'sha256', flight.signal);
  }
}
