import type { PurgeOrder } from '../../contract/purge-order.ts';
import { encodedOriginKeyOf, encodeOriginKey, resultKey } from '../../contract/result-key.ts';
import type { Originals } from '../originals/originals.ts';
import type { OriginalRecords } from '../originals/records.ts';
import { resultPathPrefix } from '../ports.ts';
import type { EdgePurger } from '../purges/edge-purger.ts';
import type { Results } from './results.ts';
import type { GuardedStore } from './store.ts';

interface PurgerParts {
  readonly records: OriginalRecords;
  readonly originals: Originals;
  readonly results: Results;
  readonly store: GuardedStore | undefined;
  readonly edge: EdgePurger | undefined;
}

/** Outcome of a purge: the memory is purged in any case. */
export interface Purged {
  /** Numbers of removed results in this process's memory, and of removed renderings in the store. */
  readonly removed: { readonly memory: number; readonly store: number };
  /** Error of the store, which may then have removed a part: see `GuardedStore.remove`. */
  readonly storeFailure?: unknown;
  /** Id of the purge at the edge; `undefined` without an edge, or with a failure. */
  readonly edgeId?: string | undefined;
  /** Error of the journal: the edge does not get the purge. */
  readonly edgeFailure?: unknown;
}

/**
 * Forgets what was made from originals that were deleted or replaced, everywhere in this process and in
 * the store. Work that was begun before is neither kept nor served: requests that wait for it begin anew.
 */
export class Purger {
  readonly #parts: PurgerParts;

  constructor(parts: PurgerParts) {
    this.#parts = parts;
  }

  /**
   * Purges here, and then the edge, which would fetch the old response otherwise. Never rejects because of the store or
   * of the edge.
   */
  async purge(order: PurgeOrder): Promise<Purged> {
    return { ...(await this.#purgeStores(order)), ...(await this.#purgeEdge(order)) };
  }

  /**
   * Purges what is blocked: the edge at once, since it can fetch nothing any more, and a store may take a minute. The
   * digests by which originals are blocked stay in memory.
   */
  async takeDown(order: PurgeOrder): Promise<Purged> {
    const purging = [
      this.#purgeStores(order, { isBlocked: true }),
      this.#purgeEdge(order),
    ] as const;
    const [stores, edge] = await Promise.all(purging);
    return { ...stores, ...edge };
  }

  async #purgeEdge(order: PurgeOrder): Promise<Pick<Purged, 'edgeId' | 'edgeFailure'>> {
    try {
      return { edgeId: await this.#parts.edge?.purge(order) };
    } catch (edgeFailure) {
      return { edgeFailure };
    }
  }

  async #purgeStores(order: PurgeOrder, { isBlocked = false } = {}): Promise<Purged> {
    const filters = filtersOf(order);
    const memory = this.#forget(filters, isBlocked);
    const removal = this.#parts.store?.remove(prefixesOf(order), filters.fitsOriginal);
    const [outcome] = await Promise.allSettled([removal]);
    // Meanwhile a request may have found a rendering that was not removed yet.
    const removed = { memory: memory + this.#forget(filters, isBlocked), store: 0 };
    if (outcome.status === 'rejected') return { removed, storeFailure: outcome.reason };
    return { removed: { ...removed, store: outcome.value ?? 0 } };
  }

  /** Has the edge purge what the stores do not have any more. @throws as `EdgePurger.purge` */
  async passOn(order: PurgeOrder): Promise<void> {
    await this.#parts.edge?.purge(order);
  }

  /** Purges what is blocked in this process alone. */
  forgetBlocked(order: PurgeOrder): void {
    this.#forget(filtersOf(order), true);
  }

  /**
   * An original has come where there was none: that is forgotten, with the faults of one that was there before; and
   * nothing else where nothing else can be known, since to look through all that is remembered takes milliseconds.
   */
  noteNew(originKey: string): void {
    const { originals, records } = this.#parts;
    const filters = filtersOf({ kind: 'originals', originKeys: [originKey] });
    originals.invalidateWhere(filters.fitsOriginal);
    if (records.forget(originKey)) this.#forget(filters, false);
    else records.purgeRefusals(filters.fitsOwnKey);
  }

  /** From now on the source is asked, and no request joins what was begun before. */
  #forget({ fitsOriginal, fitsOwnKey, fitsKey }: Filters, isBlocked: boolean): number {
    const { originals, records, results } = this.#parts;
    originals.purge(fitsOriginal);
    records.purge(fitsOriginal, fitsOwnKey, { keepsDigests: isBlocked });
    return results.forget(fitsKey);
  }
}

interface Filters {
  readonly fitsOriginal: (originKey: string) => boolean;
  /** Whether a `resultKey` is of one of these originals. */
  readonly fitsOwnKey: (key: string) => boolean;
  /** Whether a `resultKey` is of a result that is to be removed. */
  readonly fitsKey: (key: string) => boolean;
}

/** Keys are compared as they are, encoded: there may be millions of them. */
function filtersOf(order: PurgeOrder): Filters {
  const folders = order.kind === 'originals' ? (order.folders ?? []) : [];
  const isBelow = createFolderTest(folders);
  const isEncodedBelow = createFolderTest(folders.map(encodeOriginKey));
  const originKeys = new Set(
    order.kind === 'originals' ? order.originKeys : order.requests.map((it) => it.originKey),
  );
  const encoded = new Set([...originKeys].map(encodeOriginKey));
  const fitsOwnKey = (key: string): boolean =>
    encoded.has(encodedOriginKeyOf(key)) || isEncodedBelow(key);
  const keys = order.kind === 'requests' ? new Set(order.requests.map(resultKey)) : undefined;
  return {
    fitsOriginal: (originKey) => originKeys.has(originKey) || isBelow(originKey),
    fitsOwnKey,
    fitsKey: keys === undefined ? fitsOwnKey : (key) => keys.has(key),
  };
}

/** Returns a test whether a key is below one of the folders, which takes as long for many of them as for one. */
function createFolderTest(folders: readonly string[]): (key: string) => boolean {
  const known = new Set(folders);
  return (key) => {
    if (known.size === 0) return false;
    for (let slash = key.indexOf('/'); slash >= 0; slash = key.indexOf('/', slash + 1)) {
      if (known.has(key.slice(0, slash + 1))) return true;
    }
    return false;
  };
}

/** Returns the prefixes of the paths in the store. */
function prefixesOf(order: PurgeOrder): readonly string[] {
  switch (order.kind) {
    case 'originals':
      return [
        ...new Set([
          ...order.originKeys.map((originKey) => `${originKey}/`),
          ...(order.folders ?? []),
        ]),
      ];
    case 'requests':
      return order.requests.map((it) => resultPathPrefix(it.originKey, resultKey(it)));
  }
}
