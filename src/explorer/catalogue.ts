import { MediaError } from '../contract/errors.ts';
import { type OriginKey, parseOriginKey } from '../contract/media-path.ts';
import { contractResources, type ResourceName, resourceRows } from '../contract/resources.ts';
import { withDeadline } from '../pipeline/abort.ts';
import type { ListedOriginal, OriginListing } from '../pipeline/ports.ts';

export interface CatalogueShelf {
  readonly resource: ResourceName;
  /** Sorted by key, numbers by value; with the decoded placeholders of the resource's path. */
  readonly originals: readonly (ListedOriginal & Pick<OriginKey, 'values'>)[];
  readonly isComplete: boolean;
}

/** Bounds in time and memory: enough for a page to show and a person to search. */
const BOUNDS = {
  /** Originals of one resource. */
  maxOriginals: 1_000,
  /** Examined objects below one prefix, originals or not. */
  maxObjects: 50_000,
  timeoutMs: 5_000,
};

const collator = new Intl.Collator('en', { numeric: true });

/**
 * Lists the originals in the storage, a bounded number of each resource, for the explorer's page.
 *
 * @returns a shelf per resource whose originals are in the storage, in the order of the contract
 * @throws MediaError `ORIGIN_ERROR` if the storage fails, `ORIGIN_TIMEOUT` if the storage listed nothing in time
 */
export async function listCatalogue(
  listing: OriginListing,
  bounds = BOUNDS,
): Promise<readonly CatalogueShelf[]> {
  const shelves = contractResources.originKeyTemplates.map(
    ({ resource }): Shelf => ({ resource, originals: [], isFull: false, isComplete: false }),
  );
  const timeout = new MediaError('ORIGIN_TIMEOUT');
  const fillAll = (signal: AbortSignal) =>
    Promise.all(
      contractResources.keyRoots.map((root) => fill(listing, root, shelves, bounds, signal)),
    );
  try {
    await withDeadline(bounds.timeoutMs, undefined, () => timeout, fillAll);
  } catch (error) {
    const isEmpty = shelves.every(({ originals }) => originals.length === 0);
    if (error !== timeout || isEmpty) throw error;
  }
  // Copies, without entries that the storage lists after the deadline.
  return shelves.map(({ resource, originals, isComplete }) => ({
    resource,
    originals: originals.toSorted((a, b) => collator.compare(a.key, b.key)),
    isComplete,
  }));
}

/** Fills the shelves with originals in a directory. */
async function fill(
  listing: OriginListing,
  directory: string,
  shelves: readonly Shelf[],
  { maxOriginals, maxObjects }: typeof BOUNDS,
  signal: AbortSignal,
): Promise<void> {
  const own = shelves.filter(({ resource }) =>
    resourceRows[resource].originKey?.startsWith(directory),
  );
  let objects = 0;
  let hasMore = false;
  const visit = ({ key, sizeBytes }: ListedOriginal): boolean => {
    if (signal.aborted) return false;
    const found = parseOriginKey(key);
    const shelf = own.find(({ resource }) => resource === found?.resource);
    if (shelf !== undefined && found !== undefined) {
      shelf.isFull ||= shelf.originals.length >= maxOriginals;
      if (!shelf.isFull) shelf.originals.push({ key, sizeBytes, values: found.values });
    }
    objects += 1;
    hasMore = objects >= maxObjects || own.every(({ isFull }) => isFull);
    return !hasMore;
  };
  await listing.list(directory, visit, signal);
  if (signal.aborted) return;
  for (const shelf of own) shelf.isComplete = !hasMore && !shelf.isFull;
}

interface Shelf extends CatalogueShelf {
  readonly originals: CatalogueShelf['originals'][number][];
  isFull: boolean;
  isComplete: boolean;
}
