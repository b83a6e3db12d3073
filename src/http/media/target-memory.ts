import { type MediaRequest, resultKey } from '../../contract/media-request.ts';

/** What a request target turned out to ask for. */
export interface KnownTarget {
  readonly request: MediaRequest;
  /** Its `resultKey`. */
  readonly key: string;
}

/** Longer targets are rare, and are read anew each time. */
const MAX_TARGET_LENGTH = 256;

/** Of each generation; a target takes some 600 bytes, with its request. */
const MAX_TARGETS = 4_096;

/**
 * Request targets that were read lately, so that popular ones need not be read again: to read one takes
 * longer than all else of a cache hit. Two generations: the older one is forgotten when the younger one is
 * full, but for those that were asked for meanwhile.
 */
export class TargetMemory {
  #young = new Map<string, KnownTarget>();
  #old = new Map<string, KnownTarget>();

  /** @param target path and query as they came in the request line */
  find(target: string): KnownTarget | undefined {
    const known = this.#young.get(target);
    if (known !== undefined) return known;
    const aged = this.#old.get(target);
    if (aged !== undefined) this.#keep(target, aged);
    return aged;
  }

  /** Takes note of a target that is valid, and likely to come again. */
  note(target: string, request: MediaRequest): void {
    if (target.length > MAX_TARGET_LENGTH || this.find(target) !== undefined) return;
    this.#keep(target, { request, key: resultKey(request) });
  }

  #keep(target: string, known: KnownTarget): void {
    this.#young.set(target, known);
    if (this.#young.size < MAX_TARGETS) return;
    this.#old = this.#young;
    this.#young = new Map();
  }
}
