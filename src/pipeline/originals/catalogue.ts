import { MediaError } from '../../contract/errors.ts';
import { parseOriginKey } from '../../contract/origin-key.ts';
import { type ResourceName, resourceRows } from '../../contract/resources.ts';
import { withDeadline } from '../abort.ts';
import type { ListedOriginal, OriginListing } from '../ports.ts';

/** An original, and what stands for it in the paths of its resource. */
export interface CataloguedOriginal extends ListedOriginal {
  /** Value per placeholder of the template, decoded. */
  readonly values: Readonly<Record<string, string>>;
}

/** The originals of a resource that were found. */
export interface CatalogueShelf {
  readonly resource: ResourceName;
  /** By key, numbers in it by their value. */
  readonly originals: readonly CataloguedOriginal[];
  /** Whether there are no others. */
  readonly isComplete: boolean;
}

/** How much a catalogue takes of the storage's time and of memory. */
export interface CatalogueBounds {
  /** Of one resource. */
  readonly maxOriginals: number;
  /** Objects below one prefix that are looked at, whatever they are. */
  readonly maxObjects: number;
  /** For everything, in milliseconds. */
  readonly timeoutMs: number;
}

/** What a page can show, and a person look through. */
const BOUNDS: CatalogueBounds = { maxOriginals: 300, maxObjects: 20_000, timeoutMs: 5_000 };

const collator = new Intl.Collator('en', { numeric: true });

/** Tells which originals there are, a bounded number of each resource, for people who look around. */
export class OriginalsCatalogue {
  readonly #listing: OriginListing;
  readonly #bounds: CatalogueBounds;
  #underWay: Promise<readonly CatalogueShelf[]> | undefined;

  constructor(listing: OriginListing, bounds: CatalogueBounds = BOUNDS) {
    this.#listing = listing;
    this.#bounds = bounds;
  }

  /**
   * Looks through the storage; whoever comes meanwhile shares the answer.
   *
   * @returns a shelf per resource that has originals in the storage, in the order of the contract
   * @throws MediaError `ORIGIN_ERROR` if the storage fails, `ORIGIN_TIMEOUT` if it told nothing in time
   */
  list(): Promise<readonly CatalogueShelf[]> {
    this.#underWay ??= this.#look().finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  async #look(): Promise<readonly CatalogueShelf[]> {
    const shelves = new Map<ResourceName, Shelf>();
    for (const resource of Object.keys(resourceRows) as ResourceName[]) {
      const { originKey } = resourceRows[resource];
      if (originKey !== undefined) shelves.set(resource, new Shelf(originKey));
    }
    const prefixes = new Set([...shelves.values()].map(({ prefix }) => prefix));
    const never = new AbortController().signal;
    const timeout = new MediaError('ORIGIN_TIMEOUT');
    let isOver = false;
    try {
      await withDeadline(
        this.#bounds.timeoutMs,
        never,
        () => timeout,
        (signal) =>
          Promise.all(
            [...prefixes].map((prefix) => this.#fill(prefix, shelves, () => isOver, signal)),
          ),
      );
    } catch (error) {
      const isEmpty = [...shelves.values()].every(({ originals }) => originals.length === 0);
      if (error !== timeout || isEmpty) throw error;
    } finally {
      isOver = true; // who comes late finds the doors closed
    }
    return [...shelves].map(([resource, { originals, isComplete }]) => ({
      resource,
      originals: originals.toSorted((a, b) => collator.compare(a.key, b.key)),
      isComplete,
    }));
  }

  /** Fills the shelves whose originals have a prefix. */
  async #fill(
    prefix: string,
    shelves: ReadonlyMap<ResourceName, Shelf>,
    isOver: () => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { maxOriginals, maxObjects } = this.#bounds;
    const own = [...shelves.values()].filter((shelf) => shelf.prefix === prefix);
    let objects = 0;
    let hasMore = false;
    const visit = ({ key, sizeBytes }: ListedOriginal): boolean => {
      if (isOver()) return false;
      const found = parseOriginKey(key);
      const shelf = found && shelves.get(found.resource);
      if (shelf !== undefined && found !== undefined) {
        if (shelf.originals.length < maxOriginals) {
          shelf.originals.push({ key, sizeBytes, values: found.values });
        } else {
          shelf.isFull = true;
        }
      }
      objects += 1;
      hasMore = objects >= maxObjects || own.every(({ isFull }) => isFull);
      return !hasMore;
    };
    await this.#listing.list(prefix, visit, signal);
    if (isOver()) return;
    for (const shelf of own) shelf.isComplete = !hasMore && !shelf.isFull;
  }
}

/** A shelf that is being filled. */
class Shelf {
  readonly prefix: string;
  readonly originals: CataloguedOriginal[] = [];
  /** Whether one more was found than there is room for. */
  isFull = false;
  isComplete = false;

  /** @param originKey the template of the keys */
  constructor(originKey: string) {
    this.prefix = originKey.slice(0, originKey.indexOf('/') + 1);
  }
}
