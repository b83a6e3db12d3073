import { LRUCache } from 'lru-cache';
import type { SourceFormat } from '../../contract/image-formats.ts';
import { readProfileName } from '../../formats/embedded-profile.ts';
import { readImageFacts } from '../../formats/read-image-facts.ts';
import { Semaphore } from '../semaphore.ts';
import type { MemoryBudget } from './memory-budget.ts';
import { holdOriginal, type OriginAccess, openForMemory } from './read-original.ts';

/** What an original says of itself, without a pixel being decoded: for people who look around. */
export interface OriginalDescription {
  readonly format: SourceFormat;
  /** As it is seen: upright. */
  readonly widthPx: number;
  readonly heightPx: number;
  readonly frames: number;
  readonly isMoving: boolean;
  /** What its colour profile calls itself; the empty text where that has no name. */
  readonly profile: string | undefined;
  readonly sizeBytes: number;
}

/** Where originals are read from, beside what clients ask for. */
export interface DescriberParts extends Omit<OriginAccess, 'semaphore'> {
  readonly budget: MemoryBudget;
}

/** Originals that are read at a time, since clients come first, and how many may wait for that, for how long. */
const READS = { slots: 2, maxWaiting: 200, maxWaitMs: 10_000 } as const;

/** How many descriptions are kept, and for how long: an original with another content is noticed after that. */
const KEPT = { max: 10_000, ttl: 60_000 } as const;

/** Describes originals one by one, reading each of them once in a while. */
export class OriginalDescriber {
  readonly #parts: DescriberParts;
  readonly #semaphore = new Semaphore(READS);
  readonly #known = new LRUCache<string, { readonly description: OriginalDescription | undefined }>(
    KEPT,
  );

  constructor(parts: DescriberParts) {
    this.#parts = parts;
  }

  /**
   * Reads an original and describes it; `undefined` where it is no image, or one with a fault, or cannot be read now.
   *
   * @param key of the original
   */
  async describe(key: string, signal: AbortSignal): Promise<OriginalDescription | undefined> {
    const known = this.#known.get(key);
    if (known !== undefined) return known.description;
    const { origin, limits, budget } = this.#parts;
    try {
      const access = { origin, limits, semaphore: this.#semaphore };
      const object = await openForMemory(access, key, signal);
      const { bytes, release } = await holdOriginal(object, limits, budget, signal);
      try {
        const description = describeOriginal(bytes);
        this.#known.set(key, { description });
        return description;
      } finally {
        release();
      }
    } catch {
      return undefined;
    }
  }
}

/** Describes the bytes of an original; `undefined` where they are no image, or one with a fault. */
export function describeOriginal(bytes: Uint8Array): OriginalDescription | undefined {
  try {
    const facts = readImageFacts(bytes);
    if (facts === undefined) return undefined;
    const { format, widthPx, heightPx, orientation, frames, animation, animationFault } = facts;
    const isTurned = orientation >= 5;
    return {
      format,
      widthPx: isTurned ? heightPx : widthPx,
      heightPx: isTurned ? widthPx : heightPx,
      frames,
      isMoving: animation !== undefined && animationFault === undefined && frames > 1,
      profile: readProfileName(bytes),
      sizeBytes: bytes.byteLength,
    };
  } catch {
    return undefined;
  }
}
