import { LRUCache } from 'lru-cache';
import { readImageFacts } from '../formats/read-image-facts.ts';
import type { Originals } from '../pipeline/originals/originals.ts';
import type { RequestTrace } from '../pipeline/request-trace.ts';
import { Semaphore } from '../pipeline/semaphore.ts';
import type { OriginalFacts } from './explorer-data.ts';

/** Originals that are read at a time, since clients come first, and how many may wait for that, for how long. */
const READS = { slots: 2, maxWaiting: 200, maxWaitMs: 10_000 } as const;

/** Descriptions that are kept, and for how long: an original with another content is noticed after that. */
const KEPT = { max: 10_000, ttl: 60_000 } as const;

/** Describes originals one by one, reading each of them once in a while. */
export class OriginalDescriber {
  readonly #originals: Originals;
  readonly #semaphore = new Semaphore(READS);
  readonly #known = new LRUCache<string, { readonly facts: OriginalFacts | undefined }>(KEPT);

  constructor(originals: Originals) {
    this.#originals = originals;
  }

  /** Reads an original and describes it; `undefined` for what is no sound image, or cannot be read now. */
  async describe(
    originKey: string,
    signal: AbortSignal,
    trace: RequestTrace,
  ): Promise<OriginalFacts | undefined> {
    const known = this.#known.get(originKey);
    if (known !== undefined) return known.facts;
    try {
      const release = await this.#semaphore.enter(signal);
      const { work: original, leave } = this.#originals.join({ originKey });
      try {
        await original.identify({ isIdentityEnough: false, hasResult: false, trace });
        const facts = describeOriginal((await original.read()).bytes);
        this.#known.set(originKey, { facts });
        return facts;
      } finally {
        leave();
        release();
      }
    } catch {
      return undefined;
    }
  }
}

/** Describes the bytes of an original; `undefined` for what is no sound image. */
export function describeOriginal(bytes: Uint8Array): OriginalFacts | undefined {
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
      sizeBytes: bytes.byteLength,
    };
  } catch {
    return undefined;
  }
}
