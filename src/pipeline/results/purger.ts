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
  /** `process`: purges only the memory of this process. */
  readonly scope: 'process' | 'everywhere';
  /** Keeps the digests of the originals, by which they may be blocked. */
  readonly keepsDigests?: boolean;
  /** Skips the search for results, which takes milliseconds, if no original with this key was known. */
  readonly isNew?: boolean;
}

/** Outcome of a purge. The memory is purged in any case. */
export interface Purged {
  /** Numbers of removed results in this process's memory, and of removed renderings in the store. */
  readonly removed: { readonly memory: number; readonly store: number };
  /** Error of `GuardedStore.remove`, which may have removed some of the renderings. */
  readonly storeFailure?: unknown;
  /** Id of the purge at the CDN; omitted without a CDN, or with a failure. */
  readonly cdnPurgeId?: string | undefined;
  /** Error of `CdnPurger.purge`: the CDN will not receive the purge. */
  readonly cdnFailure?: unknown;
}

export type Purger = ReturnType<typeof createPurger>;

/**
 * Creates the purger, which forgets all that depends on originals that were deleted, replaced or blocked. Work that began
 * before is neither kept nor served: requests that wait for it try again.
 */
export function createPurger(services: OriginalServices) {
  const { originals, records, refusals, caches, store, cdn } = services;

  /**
   * Purges the memory before it returns a promise, and then the store and the CDN at the same time: a takedown must not
   * wait for the store. The CDN's second round purges what the CDN fetches before the store is purged. Never rejects.
   */
  async function purge(request: PurgeRequest, options: PurgeOptions): Promise<Purged> {
    const filters = filtersOf(request);
    const memory = forget(filters, options);
    if (options.scope === 'process') return { removed: { memory, store: 0 } };
    const [removal, sending] = await Promise.allSettled([
      store?.remove(prefixesOf(request), filters.matchesOriginal),
      cdn?.purge(request),
    ]);
    // Meanwhile a request may have found a rendering that was not removed yet.
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

  /** From now on the origin is contacted, and requests do not join earlier work. Returns the number of removed results. */
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
  /** Whether a `resultKey` is of one of these originals. */
  readonly isOfOriginals: (key: string) => boolean;
  /** Whether a `resultKey` is of a result to remove. */
  readonly matchesKey: (key: string) => boolean;
}

/** Keys are compared encoded, without parsing: there may be millions of them. */
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
  const isOfOriginals = (key: string): boolean =>
    encoded.has(encodedOriginKeyOf(key)) || isEncodedBelow(key);
  const keys =
    request.kind === 'renderings' ? new Set(request.renderings.map(resultKey)) : undefined;
  return {
    originKeys: [...originKeys],
    matchesOriginal: (originKey) => originKeys.has(originKey) || isBelow(originKey),
    isOfOriginals,
    matchesKey: keys === undefined ? isOfOriginals : (key) => keys.has(key),
  };
}

/** Returns a test whether a key is in one of the prefixes, which takes as long for many prefixes as for one. */
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

/** Returns the prefixes of the paths in the store. */
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
