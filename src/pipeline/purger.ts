import { originKeyOfResultKey, resultKey } from '../media/media-request.ts';
import type { PurgeOrder } from '../media/purge-order.ts';
import type { OriginalVersions } from './original-versions.ts';
import type { OriginalCache } from './ports.ts';
import type { RefusalMemory } from './refusal-memory.ts';
import { resultPathPrefix } from './result-path.ts';
import type { Results } from './results.ts';

/** All that remembers something of originals. */
export interface PurgerParts {
  readonly versions: OriginalVersions;
  readonly originals: OriginalCache;
  readonly refusals: RefusalMemory;
  readonly results: Results;
}

/** How many were removed, and from where. */
export interface Purged {
  /** Answers in this process's memory. */
  readonly memory: number;
  /** Renderings in the persistent store. */
  readonly store: number;
}

/**
 * Forgets what was made from originals that were deleted or replaced, everywhere in this process and in
 * the store. What was begun before is served to those who waited for it, and not kept.
 */
export class Purger {
  readonly #parts: PurgerParts;

  constructor(parts: PurgerParts) {
    this.#parts = parts;
  }

  /** @throws Error if the store fails; the memory is purged then, and a part of the store */
  async purge(order: PurgeOrder): Promise<Purged> {
    const { results } = this.#parts;
    const fits = originsOf(order);
    this.#forgetOriginals(fits);
    if (order.kind === 'requests') {
      const keys = new Set(order.requests.map(resultKey));
      const memory = results.forget((key) => keys.has(key));
      const prefixes = order.requests.map((it) => resultPathPrefix(it.originKey, resultKey(it)));
      return { memory, store: await results.removeStored(prefixes, fits) };
    }
    const memory = results.forget((key) => fits(originKeyOfResultKey(key)));
    const prefixes =
      order.kind === 'prefix'
        ? [order.prefix]
        : order.originKeys.map((originKey) => `${originKey}/`);
    return { memory, store: await results.removeStored(prefixes, fits) };
  }

  /** From now on the origin is asked, and nobody joins what was begun before. */
  #forgetOriginals(fits: (originKey: string) => boolean): void {
    const { versions, originals, refusals } = this.#parts;
    versions.forget(fits);
    originals.deleteWhere(fits);
    refusals.forget((key) => fits(originKeyOfResultKey(key)), fits);
  }
}

function originsOf(order: PurgeOrder): (originKey: string) => boolean {
  if (order.kind === 'prefix') return (originKey) => originKey.startsWith(order.prefix);
  const originKeys = new Set(
    order.kind === 'originals'
      ? order.originKeys
      : order.requests.map(({ originKey }) => originKey),
  );
  return (originKey) => originKeys.has(originKey);
}
