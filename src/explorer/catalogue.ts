import { MediaError } from '../contract/errors.ts';
import { type OriginKey, parseOriginKey } from '../contract/media-path.ts';
import { contractResources, type ResourceName, resourceRows } from '../contract/resources.ts';
import { withDeadline } from '../pipeline/abort.ts';
import type { ListedOriginal, OriginListing } from '../pipeline/ports.ts';

export interface CatalogueShelf {
  readonly resource: ResourceName;
  /** Sorted by key, in natural order, with the decoded values of the path's placeholders. */
  readonly originals: readonly (ListedOriginal & Pick<OriginKey, 'values'>)[];
  readonly isComplete: boolean;
}

const LIMITS = {
  /** Originals of one resource. */
  maxOriginals: 1_000,
  /** Listed objects below one prefix, including those that are not originals. */
  maxObjects: 50_000,
  timeoutMs: 5_000,
};

const collator = new Intl.Collator('en', { numeric: true });

/**
 * Lists originals in the storage for the explorer, up to a number of each resource.
 *
 * @returns a shelf for each stored resource, in the order of the contract
 * @throws MediaError `ORIGIN_ERROR` if the storage fails, `ORIGIN_TIMEOUT` if it lists nothing in time
 */
export async function listCatalogue(
  listing: OriginListing,
  limits = LIMITS,
): Promise<readonly CatalogueShelf[]> {
  const shelves = contractResources.originKeyTemplates.map(
    ({ resource }): Shelf => ({ resource, originals: [], isFull: false, isComplete: false }),
  );
  const timeout = new MediaError('ORIGIN_TIMEOUT');
  const fillAll = (signal: AbortSignal) =>
    Promise.all(
      contractResources.keyRoots.map((root) => fill(listing, root, shelves, limits, signal)),
    );
  try {
    await withDeadline(limits.timeoutMs, undefined, () => timeout, fillAll);
  } catch (error) {
    const isEmpty = shelves.every(({ originals }) => originals.length === 0);
    if (error !== timeout || isEmpty) throw error;
  }
  // Copies the lists, since the storage may still add to them after the deadline.
  return shelves.map(({ resource, originals, isComplete }) => ({
    resource,
    originals: originals.toSorted((a, b) => collator.compare(a.key, b.key)),
    isComplete,
  }));
}

/** Fills shelves with the originals below a top-level directory. */
async function fill(
  listing: OriginListing,
  root: string,
  shelves: readonly Shelf[],
  { maxOriginals, maxObjects }: typeof LIMITS,
  signal: AbortSignal,
): Promise<void> {
  const filled = shelves.filter(({ resource }) =>
    resourceRows[resource].originKey?.startsWith(root),
  );
  let objects = 0;
  let hasMore = false;
  const visit = ({ key, sizeBytes }: ListedOriginal): boolean => {
    if (signal.aborted) return false;
    const found = parseOriginKey(key);
    const shelf = filled.find(({ resource }) => resource === found?.resource);
    if (shelf !== undefined && found !== undefined) {
      shelf.isFull ||= shelf.originals.length >= maxOriginals;
      if (!shelf.isFull) shelf.originals.push({ key, sizeBytes, values: found.values });
    }
    objects += 1;
    hasMore = objects >= maxObjects || filled.every(({ isFull }) => isFull);
    return !hasMore;
  };
  await listing.list(root, visit, signal);
  if (signal.aborted) return;
  for (const shelf of filled) shelf.isComplete = !hasMore && !shelf.isFull;
}

interface Shelf extends CatalogueShelf {
  readonly originals: CatalogueShelf['originals'][number][];
  isFull: boolean;
  isComplete: boolean;
}
