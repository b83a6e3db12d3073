import { readUrl } from '../../contract/external-url.ts';
import { withDeadline } from '../abort.ts';
import { Semaphore } from '../semaphore.ts';
import type { FlightControls } from '../single-flight.ts';
import { type Backend, lateError, type OriginalLocation, type OriginalName } from './backend.ts';
import { hashBody, stateOf } from './digests.ts';
import type { FactStore, FactSubject } from './fact-store.ts';
import { openContent } from './open-body.ts';

/** Bounds of concurrent and of waiting hashes. */
const HASHES = { slots: 4, maxWaiting: 10_000, maxWaitMs: 3_600_000 } as const;

/** The same for one host, so that one host cannot use all slots of the sites. */
const HASHES_OF_HOST = { ...HASHES, slots: 1 } as const;

/** A hash may take this many times as long as loading the same bytes, since no request waits for it. */
const PATIENCE = 4;

const MAX_HASH_MS = 24 * 3_600_000;

/** Begins work on an original, which drops writes once the original is purged. */
type BeginFlight = (name: OriginalName, controls: FlightControls) => OriginalLocation & FactSubject;

/** Computes the SHA-256 of originals that are too large to be read before they are sent. */
export class BackgroundHashes {
  readonly #facts: FactStore;
  readonly #begin: BeginFlight;
  /** Ends the hashing. */
  readonly #closing: AbortSignal;
  readonly #ofStorage = new Semaphore(HASHES);
  readonly #ofSites = new Semaphore(HASHES);
  readonly #ofHosts = new Map<string, Semaphore>();
  /** Keys of the originals that are hashed, or wait for that. */
  readonly #underWay = new Set<string>();

  /** Called with each original that was hashed after it was sent. */
  onHashed: (originKey: string, etag: string, sha256: string) => Promise<void> = async () =>
    undefined;

  constructor(facts: FactStore, begin: BeginFlight, closing: AbortSignal) {
    this.#facts = facts;
    this.#begin = begin;
    this.#closing = closing;
  }

  /** Hashes an original of any size in the background, in constant memory. */
  hashSoon(location: OriginalLocation): void {
    const { originKey } = location;
    if (this.#underWay.has(originKey)) return;
    this.#underWay.add(originKey);
    this.#hash(location)
      .catch(() => undefined) // the next request tries again
      .finally(() => this.#underWay.delete(originKey));
  }

  async #hash(location: OriginalLocation): Promise<void> {
    const { originKey, backend, sourceKey } = location;
    const release = await (backend.isExternal
      ? this.#enterSite(location)
      : this.#enter(this.#ofStorage));
    const ending = new AbortController();
    try {
      const url = backend.isExternal ? sourceKey : undefined;
      const controls = { signal: ending.signal, keep: () => undefined };
      const flight = this.#begin({ originKey, url }, controls);
      const { etag, sha256 } = await this.#hashInTime(flight);
      this.#facts.put(flight, etag, 'sha256', sha256);
      await this.onHashed(originKey, etag, sha256);
    } finally {
      ending.abort();
      release();
    }
  }

  #hashInTime({ backend, sourceKey }: OriginalLocation) {
    const onTimeout = (): Error => lateError(backend, 'The hash took too long.');
    const timeoutMs = timeoutMsOf(backend, 1);
    return withDeadline(timeoutMs, this.#closing, onTimeout, async (signal, restart) => {
      const opened = await openContent(backend, sourceKey, { signal });
      restart(timeoutMsOf(backend, opened.sizeBytes ?? backend.maxPassedBytes));
      const sha256 = await hashBody(backend, opened);
      return { etag: stateOf(backend, opened), sha256 };
    });
  }

  #enter(semaphore: Semaphore): Promise<() => void> {
    return semaphore.enter(this.#closing);
  }

  /** Waits for the host first, so that the originals of one host do not fill the queue of all sites. */
  async #enterSite({ sourceKey }: OriginalLocation): Promise<() => void> {
    const host = readUrl(sourceKey)?.hostname ?? '';
    const ofHost = this.#ofHosts.get(host) ?? new Semaphore(HASHES_OF_HOST);
    this.#ofHosts.set(host, ofHost);
    const leaveHost = await this.#enter(ofHost);
    const leave = (): void => {
      leaveHost();
      if (ofHost.inside === 0) this.#ofHosts.delete(host);
    };
    try {
      const leaveSites = await this.#enter(this.#ofSites);
      return () => {
        leaveSites();
        leave();
      };
    } catch (error) {
      leave();
      throw error;
    }
  }
}

function timeoutMsOf(backend: Backend, sizeBytes: number): number {
  const { wholeBodyTimeoutMs, maxOriginalBytes } = backend;
  const parts = Math.ceil(sizeBytes / maxOriginalBytes);
  return Math.min(PATIENCE * wholeBodyTimeoutMs * parts, MAX_HASH_MS);
}
