import { MediaError } from '../../contract/errors.ts';
import type { MediaRequest } from '../../contract/media-request.ts';
import { isAbsentUrl } from '../absent-media.ts';
import type { OriginOutcome } from '../meter.ts';
import type { Source } from '../ports.ts';
import type { Semaphore } from '../semaphore.ts';
import { siteError } from '../site-failure.ts';

/** Deadlines and bounds of reading from the storage (contract §6). */
export interface OriginLimits {
  /** Maximum time until the storage responds, in milliseconds. */
  readonly firstByteTimeoutMs: number;
  /** Maximum time until the last byte of an original that is buffered, in milliseconds. */
  readonly bodyTimeoutMs: number;
  /** Maximum size of an original that is buffered, in bytes. */
  readonly maxOriginalBytes: number;
}

/** Bounds of reading from other sites (contract §8). */
export interface SiteLimits {
  /** Maximum time until the last byte of an original that is buffered, in milliseconds. */
  readonly bodyTimeoutMs: number;
  /** Maximum number of concurrent passthrough bodies. */
  readonly maxStreams: number;
  /** Maximum size of a passthrough body, in bytes. */
  readonly maxBytes: number;
}

/** Other sites as a source of originals. */
export interface ExternalMedia {
  readonly source: Source;
  readonly limits: SiteLimits;
}

/** A source of originals, with the differences between sources as data: how to read them, and within which bounds. */
export interface Backend extends Omit<OriginLimits, 'firstByteTimeoutMs'> {
  readonly source: Source;
  /** Whether originals come from other sites: failures are concealed, lengths not trusted, bytes checked on arrival. */
  readonly isExternal: boolean;
  /** Whether originals, states and results outlive the work on them; quarantines and facts always do. */
  readonly remembers: boolean;
  /** Bounds buffered bodies; `undefined` if the source bounds its connections itself. */
  readonly reads: Semaphore | undefined;
  /** Bounds passthrough bodies. */
  readonly streams: Semaphore;
  /** `undefined` if the source enforces this deadline itself. */
  readonly firstByteTimeoutMs: number | undefined;
  /** Maximum size of a passthrough body, in bytes. */
  readonly maxForwardedBytes: number;
  /** Periods for which a failure is remembered instead of contacting the source again, in milliseconds. */
  readonly failedForMs: {
    /** While an older result is served instead. */
    readonly withResult: number;
    /** While all requests fail: short, since clients retry. */
    readonly withoutResult: number;
  };
  /** Maximum age of work that requests join: later, its findings may be out of date. */
  readonly maxJoinAgeMs: number;
  /** Counts responses and bytes; `undefined` if the source counts its own. */
  readonly observer: SourceObserver | undefined;
}

/** Configured sources of originals. */
export interface Backends {
  readonly storage: Backend;
  readonly sites?: Backend | undefined;
  /** Uploads that the platform has not accepted yet. */
  readonly uploads?: Backend | undefined;
  /** Media that arrived with an internal request. */
  readonly inline?: Backend | undefined;
}

/** Prefixes of origin keys outside the storage. No key of the storage begins with a slash. */
export const NAMESPACES = { uploads: '/uploads/', inline: '/inline/' } as const;

/** Returns the origin key of an object outside the storage. */
export function namespacedKey(namespace: keyof typeof NAMESPACES, key: string): string {
  return NAMESPACES[namespace] + key;
}

/** Whether an origin key is outside the storage: its results are not stored, and not at the CDN. */
export function isNamespaced(originKey: string): boolean {
  return originKey.startsWith('/');
}

/** Name of an original; other sites' originals have a URL. */
export type OriginalName = Pick<MediaRequest, 'originKey'> & Partial<Pick<MediaRequest, 'url'>>;

/** Location of an original. */
export interface OriginalLocation {
  readonly backend: Backend;
  readonly originKey: string;
  /** Name at the source. */
  readonly sourceKey: string;
}

export interface SourceObserver {
  readonly noteReadBytes: (bytes: number) => void;
  /** Called for a body that broke off. */
  readonly noteBrokenBody: () => void;
  /** @param error of an opening that failed */
  readonly noteOutcome: (outcome: OriginOutcome, error?: unknown) => void;
}

export function createStorageBackend(
  source: Source,
  limits: OriginLimits,
  semaphores: Pick<Backend, 'reads' | 'streams'>,
  { observer, remembers = true }: Partial<Pick<Backend, 'observer' | 'remembers'>> = {},
): Backend {
  return {
    source,
    isExternal: false,
    remembers,
    ...limits,
    ...semaphores,
    maxForwardedBytes: Number.POSITIVE_INFINITY,
    failedForMs: { withResult: 5_000, withoutResult: 2_000 },
    maxJoinAgeMs: 5_000,
    observer,
  };
}

export function createSiteBackend(
  { source, limits }: ExternalMedia,
  maxOriginalBytes: number,
  streams: Semaphore,
): Backend {
  return {
    source: {
      identity: source.identity,
      open: async (url, options) => {
        if (isAbsentUrl(url)) throw new MediaError('UNKNOWN_MEDIA');
        return source.open(url, options);
      },
    },
    isExternal: true,
    remembers: true,
    reads: undefined,
    streams,
    firstByteTimeoutMs: undefined,
    bodyTimeoutMs: limits.bodyTimeoutMs,
    maxOriginalBytes,
    maxForwardedBytes: limits.maxBytes,
    failedForMs: { withResult: 60_000, withoutResult: 60_000 },
    maxJoinAgeMs: Number.POSITIVE_INFINITY,
    observer: undefined,
  };
}

export function sourceTimeout({ isExternal }: Backend, message: string): MediaError {
  return isExternal
    ? siteError(message, { reason: 'time' })
    : new MediaError('ORIGIN_TIMEOUT', { cause: new Error(message) });
}

/** Returns the error of a failed transfer. Only undici names an error of a stalled body. */
export function brokenError({ isExternal }: Backend, cause: unknown): MediaError {
  if (cause instanceof MediaError) return cause;
  if (!isExternal) return new MediaError('ORIGIN_ERROR', { cause });
  const isLate = cause instanceof Error && cause.name === 'BodyTimeoutError';
  const reason = isLate ? 'time' : 'response';
  return siteError('The body is incomplete.', { reason, cause });
}
