import type { Extent } from '../byte-reader.ts';

/** Extents of a file, in any order, that are erased when the stream arrives there. */
export class ErasedExtents {
  #extents: Extent[] = [];
  #next = 0;
  #isSorted = true;

  add(extents: readonly Extent[]): void {
    this.#extents = this.#extents.slice(this.#next).concat(extents);
    this.#next = 0;
    this.#isSorted = false;
  }

  /** Returns the first extent that ends after `position`, which must not be before that of an earlier call. */
  next(position: number): Extent | undefined {
    if (!this.#isSorted) {
      this.#extents.sort((one, other) => one.start - other.start);
      this.#isSorted = true;
    }
    for (;;) {
      const extent = this.#extents[this.#next];
      if (extent === undefined || extent.end > position) return extent;
      this.#next += 1;
    }
  }
}
