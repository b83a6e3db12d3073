import { createHash } from 'node:crypto';
import { readUrl } from '../../contract/external-url.ts';
import { encodeOriginKey } from '../../contract/result-key.ts';
import { withDeadline } from '../abort.ts';
import type { Opened, ResultAddress } from '../ports.ts';
import type { GuardedStore } from '../results/store.ts';
import { Semaphore } from '../semaphore.ts';
import { type Backend, brokenError, lateError, type OriginalLocation } from './backend.ts';
import { isStream, lengthOf, openContent } from './open-body.ts';
import { passBody } from './pass-body.ts';
import type { OriginalRecords } from './records.ts';

interface DigestsParts {
  readonly records: OriginalRecords;
  readonly store: GuardedStore | undefined;
  /** Ends the hashing in the background. */
  readonly closing: AbortSignal;
}

/** Work on an original through which all writes pass: see `OriginalFlight.commit`. */
interface WritingFlight extends OriginalLocation {
  readonly commit: (write: () => void) => unknown;
}

/** Large originals that are hashed at once, and that wait. */
const HASHES = { slots: 4, maxWaiting: 10_000, maxWaitMs: 3_600_000 } as const;

/** The same of one host, so that no host takes all places of the sites. */
const HASHES_OF_HOST = { ...HASHES, slots: 1 } as const;

/** A hash gets that many times as long as the same bytes may take when they are read whole: nobody waits for it. */
const PATIENCE = 4;

const MAX_HASH_MS = 24 * 3_600_000;

/**
 * SHA-256 digests of originals, hexadecimal, each tied to one state of its original: in the records, and beside the
 * results in the store. A digest is none of a release's, so that an upgrade finds it.
 */
export class Digests {
  readonly #parts: DigestsParts;
  readonly #ofStorage = new Semaphore(HASHES);
  readonly #ofSites = new Semaphore(HASHES);
  readonly #ofHosts = new Map<string, Semaphore>();
  /** Keys of the originals that are hashed, or wait for that. */
  readonly #underWay = new Set<string>();

  /** Called with each original that was hashed after it was sent. */
  onHashed: (originKey: string, etag: string, sha256: string) => Promise<void> = async () =>
    undefined;

  constructor(parts: DigestsParts) {
    this.#parts = parts;
  }

  /** Returns what is known of a state. @throws `signal.reason` */
  async find(originKey: string, etag: string, signal: AbortSignal): Promise<string | undefined> {
    const { records, store } = this.#parts;
    const known = records.findSha256(originKey, etag);
    if (known !== undefined || store === undefined) return known;
    const stored = await store.find(addressOf(originKey, etag), signal);
    const sha256 = stored && Buffer.from(stored.body).toString();
    if (sha256 === undefined || !/^[\da-f]{64}$/.test(sha256)) return undefined;
    records.noteDetails(originKey, etag, { sha256 });
    return sha256;
  }

  note(originKey: string, etag: string, sha256: string): void {
    const { records } = this.#parts;
    if (records.findSha256(originKey, etag) === sha256) return;
    records.noteDetails(originKey, etag, { sha256 });
    this.store(originKey, etag, sha256);
  }

  /** Stores a digest, also one that is in memory: a purge removes it from the store. */
  store(originKey: string, etag: string, sha256: string): void {
    const stored = { body: Buffer.from(sha256), mimeType: 'text/plain' };
    this.#parts.store?.add(addressOf(originKey, etag), stored);
  }

  /** Remembers the digest of a state, unless the original was purged since the work on it began. */
  noteOf(flight: WritingFlight, etag: string, sha256: string): void {
    // An identity that is a digest is known after a restart, too.
    const isKnown = isDigest(flight.backend, etag);
    const { records } = this.#parts;
    flight.commit(() =>
      isKnown
        ? records.noteDetails(flight.originKey, etag, { sha256 })
        : this.note(flight.originKey, etag, sha256),
    );
  }

  /** Hashes an original of any size in the background, in constant memory. */
  hashSoon(place: OriginalLocation): void {
    const { originKey } = place;
    if (this.#underWay.has(originKey)) return;
    this.#underWay.add(originKey);
    this.#hash(place)
      .catch(() => undefined) // the next request tries again
      .finally(() => this.#underWay.delete(originKey));
  }

  async #hash(place: OriginalLocation): Promise<void> {
    const { originKey, backend } = place;
    const leave = await (backend.isExternal
      ? this.#enterSite(place)
      : this.#enter(this.#ofStorage));
    try {
      const { etag, sha256 } = await this.#hashInTime(place);
      this.note(originKey, etag, sha256);
      await this.onHashed(originKey, etag, sha256);
    } finally {
      leave();
    }
  }

  #hashInTime({ backend, sourceKey }: OriginalLocation) {
    const { closing } = this.#parts;
    const onTimeout = (): Error => lateError(backend, 'The hash took too long.');
    return withDeadline(timeoutMsOf(backend, 1), closing, onTimeout, async (signal, restart) => {
      const opened = await openContent(backend, sourceKey, { signal });
      restart(timeoutMsOf(backend, opened.sizeBytes ?? backend.maxPassedBytes));
      const sha256 = await hashBody(backend, opened);
      return { etag: stateOf(backend, opened), sha256 };
    });
  }

  #enter(semaphore: Semaphore): Promise<() => void> {
    return semaphore.enter(this.#parts.closing);
  }

  /** Waits for the host first, so that the originals of one host keep no place of all sites waiting. */
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

/**
 * Returns a name of the state of an original that is not held whole: the tag of the storage, or what another site tells.
 * A site that tells nothing but a length is judged by that.
 */
export function stateOf({ isExternal }: Backend, opened: Opened): string {
  const { etag = '', validators, sizeBytes } = opened;
  return isExternal
    ? JSON.stringify([validators?.etag, validators?.lastModified, sizeBytes])
    : etag;
}

/**
 * Hashes an opened original as its bytes come.
 *
 * @throws MediaError as `passBody` does
 */
export async function hashBody(backend: Backend, opened: Opened): Promise<string> {
  const { body } = opened;
  const rest = isStream(body) ? body : undefined;
  const prefix = body instanceof Uint8Array ? body : new Uint8Array();
  const hash = createHash('sha256');
  try {
    for await (const chunk of passBody(backend, prefix, rest, lengthOf(opened))) hash.update(chunk);
  } catch (error) {
    throw brokenError(backend, error);
  }
  return hash.digest('hex');
}

/** Whether the identity of a state is the digest of its bytes; that of another site's video is a `stateOf`. */
export function isDigest({ source }: Backend, etag: string): boolean {
  return source.identity === 'digest' && !etag.startsWith('[');
}

export function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function addressOf(originKey: string, originalEtag: string): ResultAddress {
  return { originKey, key: `${encodeOriginKey(originKey)}?sha256`, originalEtag, release: '' };
}
