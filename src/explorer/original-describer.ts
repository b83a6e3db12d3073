import { LRUCache } from 'lru-cache';
import { readImageFacts } from '../formats/read-image-facts.ts';
import type { Original } from '../pipeline/originals/original.ts';
import type { HeldVideo } from '../pipeline/originals/original-access.ts';
import type { Originals } from '../pipeline/originals/originals.ts';
import type { AdmittedRenderer } from '../pipeline/render/admitted-renderer.ts';
import { orientedSize } from '../pipeline/render/plan.ts';
import type { RequestTrace } from '../pipeline/request-trace.ts';
import { Semaphore } from '../pipeline/semaphore.ts';
import type { OriginalFacts } from './explorer-data.ts';

/** Bounds of concurrent reads: few, since clients of media come first. */
const READS = { slots: 2, maxWaiting: 200, maxWaitMs: 10_000 } as const;

/** Number and lifetime of kept descriptions; a replaced original shows its old facts for that long. */
const KEPT = { max: 10_000, ttl: 60_000 } as const;

/** Describes originals from their bytes, and keeps the descriptions for a while. */
export class OriginalDescriber {
  readonly #originals: Originals;
  readonly #renderer: AdmittedRenderer;
  readonly #semaphore = new Semaphore(READS);
  readonly #descriptions = new LRUCache<string, { readonly facts: OriginalFacts | undefined }>(
    KEPT,
  );

  constructor(originals: Originals, renderer: AdmittedRenderer) {
    this.#originals = originals;
    this.#renderer = renderer;
  }

  /** Reads and describes an original; returns `undefined` if it is not a sound image, or cannot be read now. */
  async describe(
    originKey: string,
    signal: AbortSignal,
    trace: RequestTrace,
  ): Promise<OriginalFacts | undefined> {
    const kept = this.#descriptions.get(originKey);
    if (kept !== undefined) return kept.facts;
    try {
      const release = await this.#semaphore.enter(signal);
      const { work: original, leave } = this.#originals.join({ originKey });
      try {
        await original.identify({ isIdentityEnough: false, hasResult: false, trace });
        const held = await original.read();
        const facts =
          'bytes' in held
            ? describeOriginal(held.bytes)
            : await this.#describeVideo(original, held, trace);
        this.#descriptions.set(originKey, { facts });
        return facts;
      } finally {
        leave();
        release();
      }
    } catch {
      return undefined;
    }
  }

  async #describeVideo(
    original: Original,
    { etag, reader }: HeldVideo,
    trace: RequestTrace,
  ): Promise<OriginalFacts | undefined> {
    const { facts } = await original.inspect(etag, (work) =>
      this.#renderer.inspect(reader, { ...work, trace }),
    );
    const { container: format, codec, durationS, video } = facts;
    if (video === undefined) return undefined;
    const { widthPx, heightPx } = orientedSize({ ...video.size, orientation: video.orientation });
    const { sizeBytes } = reader;
    return { format, widthPx, heightPx, frames: 1, isMoving: false, sizeBytes, durationS, codec };
  }
}

/** Describes the bytes of an original; returns `undefined` if they are not a sound image. */
export function describeOriginal(bytes: Uint8Array): OriginalFacts | undefined {
  try {
    const facts = readImageFacts(bytes);
    if (facts === undefined) return undefined;
    const { format, frames, animation, animationFault } = facts;
    return {
      format,
      ...orientedSize(facts),
      frames,
      isMoving: animation !== undefined && animationFault === undefined && frames > 1,
      sizeBytes: bytes.byteLength,
    };
  } catch {
    return undefined;
  }
}
