import { MediaError } from '../../contract/errors.ts';
import type { MediaRequest } from '../../contract/media-request.ts';
import { isAbsentUrl } from '../absent-media.ts';
import type { OriginOutcome } from '../meter.ts';
import type { Source } from '../ports.ts';
import type { Semaphore } from '../semaphore.ts';
import { siteError } from '../site-failure.ts';

/** Limits of reading from the storage (contract §6). */
export interface OriginLimits {
  readonly firstByteTimeoutMs: number;
  /** Maximum time until the last byte of an original that is buffered, in milliseconds. */
  readonly bodyTimeoutMs: number;
  readonly maxOriginalBytes: number;
}

/** Limits of reading from other sites (contract §8). */
export interface SiteLimits {
  /** Maximum time until the last byte of an original that is buffered, in milliseconds. */
  readonly bodyTimeoutMs: number;
  readonly maxStreams: number;
  /** Maximum size of a passthrough body, in bytes. */
  readonly maxBytes: number;
}

export interface ExternalMedia {
  readonly source: Source;
  readonly limits: SiteLimits;
}

/** A source of originals; its members are all that distinguishes sources. */
export interface Backend extends Omit<OriginLimits, 'firstByteTimeoutMs'> {
  readonly source: Source;
  /**
   * Whether originals come from other sites: failures are concealed, lengths are not trusted, bytes are checked on
   * arrival.
   */
  readonly isExternal: boolean;
  /** Whether originals, states and results are cached; quarantines and details always are. */
  readonly remembers: boolean;
  /** Limits buffered bodies. Omit if the source limits its connections. */
  readonly reads: Semaphore | undefined;
  /** Limits passthrough bodies. */
  readonly streams: Semaphore;
  /** Omit if the source enforces this deadline itself. */
  readonly firstByteTimeoutMs: number | undefined;
  /** Maximum size of a passthrough body, in bytes. */
  readonly maxForwardedBytes: number;
  /** Periods in which a remembered failure is returned instead of contacting the source, in milliseconds. */
  readonly failedForMs: {
    readonly withResult: number;
    /** Short for the storage, since clients retry. */
    readonly withoutResult: number;
  };
  /** Maximum age of joinable work; older findings may be outdated. */
  readonly maxJoinAgeMs: number;
  /** Counts responses and bytes. Omit if the source does. */
  readonly observer: SourceObserver | undefined;
}

export interface Backends {
  readonly storage: Backend;
  readonly sites?: Backend | undefined;
  /** Uploads that the platform has not accepted yet. */
  readonly uploads?: Backend | undefined;
  /** Media that arrived with an internal request. */
  readonly inline?: Backend | undefined;
}

/** Prefixes of origin keys outside the storage, whose own keys never begin with a slash. */
export const NAMESPACES = { uploads: '/uploads/', inline: '/inline/' } as const;

export function namespacedKey(namespace: keyof typeof NAMESPACES, key: string): string {
  return NAMESPACES[namespace] + key;
}

/** Whether an origin key is outside the storage: its results are neither stored nor at the CDN. */
export function isNamespaced(originKey: string): boolean {
  return originKey.startsWith('/');
}

/** Name of an original; those of other sites have a URL. */
export type OriginalName = Pick<MediaRequest, 'originKey'> & Partial<Pick<MediaRequest, 'url'>>;

export interface OriginalLocation {
  readonly backend: Backend;
  readonly originKey: string;
  readonly sourceKey: string;
}

export interface SourceObserver {
  readonly noteReadBytes: (bytes: number) => void;
  readonly noteBrokenBody: () => void;
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

/** Returns the error of a failed transfer. Only undici names the error of a stalled body. */
export function brokenError({ isExternal }: Backend, cause: unknown): MediaError {
  if (cause instanceof MediaError) return cause;
  if (!isExternal) return new MediaError('ORIGIN_ERROR', { cause });
  const isLate = cause instanceof Error && cause.name === 'BodyTimeoutError';
  const reason = isLate ? 'time' : 'response';
  return siteError('The body is incomplete.', { reason, cause });
}
