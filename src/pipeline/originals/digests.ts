import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { readUrl } from '../../contract/external-url.ts';
import { withDeadline } from '../abort.ts';
import type { Opened } from '../ports.ts';
import { Semaphore } from '../semaphore.ts';
import type { FlightControls } from '../single-flight.ts';
import {
  type Backend,
  brokenError,
  type OriginalLocation,
  type OriginalName,
  sourceTimeout,
} from './backend.ts';
import type { DetailStore, DetailSubject } from './detail-store.ts';
import { forwardBody } from './forward-body.ts';
import { isStream, lengthOf, openContent } from './open-body.ts';

/** Returns the tag of a state that is not in memory: the storage's tag, or another site's validators and length. */
export function stateOf({ isExternal }: Backend, opened: Opened): string {
  const { etag = '', validators, sizeBytes } = opened;
  return isExternal
    ? JSON.stringify([validators?.etag, validators?.lastModified, sizeBytes])
    : etag;
}

/** Computes the SHA-256 of an opened original in constant memory. @throws MediaError as `forwardBody` */
export async function hashBody(backend: Backend, opened: Opened): Promise<string> {
  const { body } = opened;
  const rest = isStream(body) ? body : undefined;
  const prefix = body instanceof Uint8Array ? body : new Uint8Array();
  const hash = createHash('sha256');
  try {
    for await (const chunk of forwardBody(backend, prefix, rest, lengthOf(opened)))
      hash.update(chunk);
  } catch (error) {
    throw brokenError(backend, error);
  }
  return hash.digest('hex');
}

/** Whether an identity is a digest of the bytes. For another site's video, it is a `stateOf`. */
export function isDigest({ source }: Backend, etag: string): boolean {
  return source.identity === 'digest' && !etag.startsWith('[');
}

export function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

const HASHES = { slots: 4, maxWaiting: 10_000, maxWaitMs: 3_600_000 } as const;

/** Limits for one host, which must not use all slots. */
const HASHES_OF_HOST = { ...HASHES, slots: 1 } as const;

/** Factor on the deadline for loading the same bytes, since no request waits for a hash. */
const DEADLINE_FACTOR = 4;

const MAX_HASH_MS = 24 * 3_600_000;

/** Begins work on an original; the work drops writes after a purge. */
type BeginFlight = (
  name: OriginalName,
  controls: FlightControls,
) => OriginalLocation & DetailSubject;

/** Hashes originals that are too large to be read before they are sent. */
export class BackgroundHashes {
  readonly #details: DetailStore;
  readonly #begin: BeginFlight;
  readonly #closing: AbortSignal;
  readonly #ofStorage = new Semaphore(HASHES);
  readonly #ofSites = new Semaphore(HASHES);
  readonly #ofHosts = new Map<string, Semaphore>();
  readonly #pending = new Set<string>();

  onHashed: (originKey: string, etag: string, sha256: string) => Promise<void> = async () =>
    undefined;

  constructor(details: DetailStore, begin: BeginFlight, closing: AbortSignal) {
    this.#details = details;
    this.#begin = begin;
    this.#closing = closing;
    // Each waiting hash adds a listener: Node.js warns of a memory leak from 11 listeners.
    setMaxListeners(0, closing);
  }

  /** Hashes an original in the background, in constant memory. */
  hashSoon(location: OriginalLocation): void {
    const { originKey } = location;
    if (this.#pending.has(originKey)) return;
    this.#pending.add(originKey);
    this.#hash(location)
      .catch(() => undefined) // the next request tries again
      .finally(() => this.#pending.delete(originKey));
  }

  async #hash(location: OriginalLocation): Promise<void> {
    const { originKey, backend, sourceKey } = location;
    const release = await (backend.isExternal
      ? this.#acquireForSite(location)
      : this.#acquire(this.#ofStorage));
    const ending = new AbortController();
    try {
      const url = backend.isExternal ? sourceKey : undefined;
      const controls = { signal: ending.signal, keepAlive: () => undefined };
      const flight = this.#begin({ originKey, url }, controls);
      const { etag, sha256 } = await this.#hashWithinDeadline(flight);
      this.#details.put(flight, etag, 'sha256', sha256);
      await this.onHashed(originKey, etag, sha256);
    } finally {
      ending.abort();
      release();
    }
  }

  #hashWithinDeadline({ backend, sourceKey }: OriginalLocation) {
    const onTimeout = (): Error => sourceTimeout(backend, 'The hash took too long.');
    const timeoutMs = timeoutMsOf(backend, 1);
    return withDeadline(timeoutMs, this.#closing, onTimeout, async (signal, restart) => {
      const opened = await openContent(backend, sourceKey, { signal });
      restart(timeoutMsOf(backend, opened.sizeBytes ?? backend.maxForwardedBytes));
      const sha256 = await hashBody(backend, opened);
      return { etag: stateOf(backend, opened), sha256 };
    });
  }

  #acquire(semaphore: Semaphore): Promise<() => void> {
    return semaphore.acquire(this.#closing);
  }

  /** Waits for the host first, so that one host does not fill the queue of all sites. */
  async #acquireForSite({ sourceKey }: OriginalLocation): Promise<() => void> {
    const host = readUrl(sourceKey)?.hostname ?? '';
    const ofHost = this.#ofHosts.get(host) ?? new Semaphore(HASHES_OF_HOST);
    this.#ofHosts.set(host, ofHost);
    const freeHost = await this.#acquire(ofHost);
    const free = (): void => {
      freeHost();
      if (ofHost.inUse === 0) this.#ofHosts.delete(host);
    };
    try {
      const freeSites = await this.#acquire(this.#ofSites);
      return () => {
        freeSites();
        free();
      };
    } catch (error) {
      free();
      throw error;
    }
  }
}

function timeoutMsOf(backend: Backend, sizeBytes: number): number {
  const { bodyTimeoutMs, maxOriginalBytes } = backend;
  const parts = Math.ceil(sizeBytes / maxOriginalBytes);
  return Math.min(DEADLINE_FACTOR * bodyTimeoutMs * parts, MAX_HASH_MS);
}
