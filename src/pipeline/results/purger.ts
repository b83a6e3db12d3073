import type { PurgeRequest } from '../../contract/purge-request.ts';
import {
  encodedOriginKeyOf,
  encodeOriginKey,
  resultKey,
  resultPathPrefix,
} from '../../contract/result-key.ts';
import { deleteWhere } from '../memory-cache.ts';
import type { OriginalServices } from '../originals/originals.ts';

export interface PurgeOptions {
  /** `process` purges only the memory of this process. */
  readonly scope: 'process' | 'everywhere';
  /** Keeps the digests, by which originals may be blocked. */
  readonly keepsDigests?: boolean;
  /** Skips the search for results, which takes milliseconds, if the original was unknown. */
  readonly isNew?: boolean;
}

/** Outcome of a purge; the memory is always purged. */
export interface Purged {
  /** Numbers of removed results in memory, and of removed renderings in the store. */
  readonly removed: { readonly memory: number; readonly store: number };
  /** Error of `GuardedStore.remove`; some renderings may have been removed. */
  readonly storeFailure?: unknown;
  readonly cdnPurgeId?: string | undefined;
  /** Error of `CdnPurger.purge`; the CDN will not receive the purge. */
  readonly cdnFailure?: unknown;
}

export type Purger = ReturnType<typeof createPurger>;

/**
 * Creates the purger for originals that were deleted, replaced or blocked. Work that began before a purge is discarded,
 * and requests that wait for it retry.
 */
export function createPurger(services: OriginalServices) {
  const { originals, records, refusals, caches, store, cdn } = services;

  /**
   * Purges the memory synchronously, then the store and the CDN concurrently, since a takedown must not wait for the
   * store. The CDN's second round covers what it fetches before the store is purged. Never rejects.
   */
  async function purge(request: PurgeRequest, options: PurgeOptions): Promise<Purged> {
    const filters = filtersOf(request);
    const memory = forget(filters, options);
    if (options.scope === 'process') return { removed: { memory, store: 0 } };
    const [removal, sending] = await Promise.allSettled([
      store?.remove(prefixesOf(request), filters.matchesOriginal),
      cdn?.purge(request),
    ]);
    // Meanwhile, a request may have cached a rendering that was not removed yet.
    const removed = {
      memory: memory + forget(filters, options),
      store: removal.status === 'fulfilled' ? (removal.value ?? 0) : 0,
    };
    return {
      removed,
      ...(removal.status === 'rejected' && { storeFailure: removal.reason }),
      ...(sending.status === 'rejected'
        ? { cdnFailure: sending.reason }
        : { cdnPurgeId: sending.value }),
    };
  }

  /** Forgets results and states, and lets no request join earlier work. Returns the number of removed results. */
  function forget(filters: Filters, { keepsDigests = false, isNew = false }: PurgeOptions): number {
    const { matchesOriginal, isOfOriginals, matchesKey, originKeys } = filters;
    refusals.purge(matchesOriginal, isOfOriginals);
    if (isNew && !originKeys.map((key) => records.forget(key)).includes(true)) {
      originals.invalidateWhere(matchesOriginal);
      return 0;
    }
    originals.purge(matchesOriginal);
    records.purge(matchesOriginal, keepsDigests);
    return deleteWhere(caches.results, matchesKey);
  }

  return { purge };
}

interface Filters {
  readonly originKeys: readonly string[];
  readonly matchesOriginal: (originKey: string) => boolean;
  /** Whether a result belongs to one of the originals. */
  readonly isOfOriginals: (cacheKey: string) => boolean;
  /** Whether a result is purged. */
  readonly matchesKey: (cacheKey: string) => boolean;
}

/** Keys are compared without parsing them, since there may be millions. */
function filtersOf(request: PurgeRequest): Filters {
  const prefixes = request.kind === 'originals' ? (request.prefixes ?? []) : [];
  const isBelow = createPrefixTest(prefixes);
  const isEncodedBelow = createPrefixTest(prefixes.map(encodeOriginKey));
  const originKeys = new Set(
    request.kind === 'originals'
      ? request.originKeys
      : request.renderings.map((it) => it.originKey),
  );
  const encoded = new Set([...originKeys].map(encodeOriginKey));
  const isOfOriginals = (cacheKey: string): boolean =>
    encoded.has(encodedOriginKeyOf(cacheKey)) || isEncodedBelow(cacheKey);
  const cacheKeys =
    request.kind === 'renderings' ? new Set(request.renderings.map(resultKey)) : undefined;
  return {
    originKeys: [...originKeys],
    matchesOriginal: (originKey) => originKeys.has(originKey) || isBelow(originKey),
    isOfOriginals,
    matchesKey: cacheKeys === undefined ? isOfOriginals : (cacheKey) => cacheKeys.has(cacheKey),
  };
}

/** Returns a test whether a key has one of the prefixes, in constant time for any number of prefixes. */
function createPrefixTest(prefixes: readonly string[]): (key: string) => boolean {
  const known = new Set(prefixes);
  return (key) => {
    if (known.size === 0) return false;
    for (let slash = key.indexOf('/'); slash >= 0; slash = key.indexOf('/', slash + 1)) {
      if (known.has(key.slice(0, slash + 1))) return true;
    }
    return false;
  };
}

function prefixesOf(request: PurgeRequest): readonly string[] {
  switch (request.kind) {
    case 'originals':
      return [
        ...new Set([
          ...request.originKeys.map((originKey) => `${originKey}/`),
          ...(request.prefixes ?? []),
        ]),
      ];
    case 'renderings':
      return request.renderings.map((it) => resultPathPrefix(it.originKey, resultKey(it)));
  }
}
