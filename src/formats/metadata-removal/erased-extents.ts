import type { Extent } from '../byte-reader.ts';
import { MetadataRemovalError } from './stream-editor.ts';

/** Maximum sorts of all extents: a movie needs one, a HEIF file with tracks two. */
const MAX_SORTS = 100;

/** Extents of a file to erase when the stream reaches them; added in any order. */
export class ErasedExtents {
  readonly #extents: Extent[] = [];
  #next = 0;
  #isSorted = true;
  #sorts = 0;

  add(extents: readonly Extent[]): void {
    for (const extent of extents) {
      if (extent.start >= extent.end) continue;
      this.#extents.push(extent);
      this.#isSorted = false;
    }
  }

  /** Returns the first extent that ends after `position`, which never decreases. @throws MetadataRemovalError */
  next(position: number): Extent | undefined {
    if (!this.#isSorted) {
      this.#sorts += 1;
      if (this.#sorts > MAX_SORTS) {
        throw new MetadataRemovalError('The file has too many indexes of metadata.');
      }
      this.#extents.sort((one, other) => one.start - other.start);
      this.#next = 0;
      this.#isSorted = true;
    }
    for (;;) {
      const extent = this.#extents[this.#next];
      if (extent === undefined || extent.end > position) return extent;
      this.#next += 1;
    }
  }
}
