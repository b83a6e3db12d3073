import { MediaError } from '../../contract/errors.ts';
import { unlessAborted } from '../abort.ts';
import { deleteWhere } from '../memory-cache.ts';
import type { OriginalIdentity } from '../ports.ts';
import type { Services } from '../services.ts';
import { type FlightControls, SingleFlight } from '../single-flight.ts';
import { type Backends, NAMESPACES, type OriginalLocation, type OriginalName } from './backend.ts';
import { BackgroundHashes, isDigest, sha256Of } from './digests.ts';
import { type LoadedOriginal, noteDigest } from './load-original.ts';
import { OriginalFlight } from './original-flight.ts';

/** State whose bytes were checked; `sha256` is hexadecimal. */
export interface CheckedOriginal extends OriginalIdentity {
  readonly sha256?: string | undefined;
}

export interface OriginalServices extends Services {
  readonly originals: Originals;
}

/** Work on originals; concurrent requests for one original share one read. */
export class Originals {
  readonly #services: Services;
  readonly #flights = new SingleFlight<OriginalFlight>((flight) => flight.isJoinable);
  /** Work in progress, including work that cannot be joined any more. */
  readonly #running = new Set<OriginalFlight>();

  readonly hashes: BackgroundHashes;

  constructor(services: Services) {
    this.#services = services;
    const { details, closing } = services;
    this.hashes = new BackgroundHashes(details, this.begin.bind(this), closing);
  }

  /** Joins or begins the work on an original; `leave` must be called. */
  join(name: OriginalName) {
    return this.#flights.join(name.originKey, (controls) => this.begin(name, controls));
  }

  /** Begins unshared work on an original; it ends when `controls.signal` aborts. */
  begin(name: OriginalName, controls: FlightControls): OriginalFlight {
    const location = locateOriginal(this.#services, name);
    const flight = new OriginalFlight(this.#services, location, controls);
    this.#running.add(flight);
    flight.signal.addEventListener('abort', () => this.#running.delete(flight), { once: true });
    return flight;
  }

  /** Runs unshared work on an original, and ends it. */
  async use<Result>(
    name: OriginalName,
    work: (original: OriginalFlight) => Promise<Result>,
  ): Promise<Result> {
    const controller = new AbortController();
    const controls = { signal: controller.signal, keepAlive: () => undefined };
    try {
      return await work(this.begin(name, controls));
    } finally {
      controller.abort();
    }
  }

  invalidateWhere(fits: (originKey: string) => boolean): void {
    for (const flight of this.#running) if (fits(flight.originKey)) flight.invalidate();
  }

  purge(fits: (originKey: string) => boolean): void {
    this.invalidateWhere(fits);
    deleteWhere(this.#services.caches.originals, fits);
  }

  /**
   * Checks a state against the blocks by SHA-256. An original of unknown digest is read completely, unless it is too
   * large; it then passes, and is hashed in the background.
   *
   * @returns the checked state: another one if the original was replaced meanwhile
   * @throws MediaError `UNAVAILABLE`, or `UNKNOWN_MEDIA` if the block is hidden; of the source; or `signal.reason`
   */
  async checkBytes(
    flight: OriginalFlight,
    state: OriginalIdentity | LoadedOriginal,
    signal: AbortSignal,
  ): Promise<CheckedOriginal> {
    const { blocks } = this.#services;
    if (blocks?.hasDigestBlocks !== true) return state;
    const checked = await unlessAborted(this.#findDigest(flight, state), signal);
    blocks.checkDigest(checked.sha256);
    return checked;
  }

  /** Finds or computes the digest of a state, and returns the hashed state. */
  async #findDigest(
    flight: OriginalFlight,
    state: OriginalIdentity | LoadedOriginal,
  ): Promise<CheckedOriginal> {
    const { etag, lastModified } = state;
    const { details } = this.#services;
    const { backend, signal } = flight;
    const known = await this.#findKnownDigest(flight, state);
    if (known !== undefined) return { etag, lastModified, sha256: known };
    try {
      const loaded = await flight.borrow();
      const identity = { etag: loaded.etag, lastModified: loaded.lastModified };
      const isLarge =
        'reader' in loaded &&
        (loaded.reader.sizeBytes > backend.maxOriginalBytes || loaded.reader.isTruncated);
      if (!isLarge) {
        const sha256 = 'bytes' in loaded ? sha256Of(loaded.bytes) : await loaded.reader.hash();
        noteDigest(details, flight, loaded.etag, sha256);
        return { ...identity, sha256 };
      }
      if (backend.isExternal) {
        const sha256 = await details.find(flight, loaded.etag, 'sha256', signal);
        // Begins after the poster is sent: a blocked digest restarts the work, endlessly if the site's tags change.
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

  /** Finds a known digest without reading the original. */
  async #findKnownDigest(
    flight: OriginalFlight,
    state: OriginalIdentity | LoadedOriginal,
  ): Promise<string | undefined> {
    const { details } = this.#services;
    const { etag } = state;
    if (isDigest(flight.backend, etag)) {
      const sha256 = Buffer.from(etag, 'base64url').toString('hex');
      noteDigest(details, flight, etag, sha256);
      return sha256;
    }
    // Each body of another site's video is checked before it is rendered.
    if (flight.backend.isExternal && 'reader' in state) return undefined;
    return details.find(flight, etag, 'sha256', flight.signal);
  }
}

/** Returns the location of an original: another site, or the source of its namespace. */
export function locateOriginal(
  backends: Backends,
  { originKey, url }: OriginalName,
): OriginalLocation {
  const namespace = (['uploads', 'inline'] as const).find((name) =>
    originKey.startsWith(NAMESPACES[name]),
  );
  const backend = backends[url === undefined ? (namespace ?? 'storage') : 'sites'];
  if (backend === undefined) throw new Error('The source of the original is not configured.');
  const key = namespace === undefined ? originKey : originKey.slice(NAMESPACES[namespace].length);
  return { backend, originKey, sourceKey: url ?? key };
}
