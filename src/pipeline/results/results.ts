import { createHash } from 'node:crypto';
import type { MediaRequest } from '../../contract/media-request.ts';
import { deleteWhere, type MemoryCache } from '../memory-cache.ts';
import type { Meter } from '../meter.ts';
import type { OriginalFlight } from '../originals/original-flight.ts';
import type { MediaResult, OriginalIdentity, ResultAddress, StoredResult } from '../ports.ts';
import type { RequestTrace } from '../request-trace.ts';
import type { FlightControls } from '../single-flight.ts';
import type { GuardedStore } from './store.ts';

/** Validators of one state of a response, which are known before anything is rendered. */
export interface Validators {
  /** Strong entity tag, quoted as it stands in the `ETag` header; `undefined` where another site gives none. */
  readonly etag: string | undefined;
  /** When the original last changed; `undefined` where the origin does not tell. */
  readonly lastModified: Date | undefined;
}

export interface RenderTask extends FlightControls {
  readonly request: MediaRequest;
  /** The canonical request's `resultKey`. */
  readonly key: string;
  readonly original: OriginalFlight;
  /** Trace of the request that began the work. */
  readonly trace: RequestTrace;
}

interface ResultsParts {
  /** By the keys of their requests, `resultKey`. */
  readonly cache: MemoryCache<MediaResult>;
  /** `undefined`: no result outlives the process. */
  readonly store: GuardedStore | undefined;
  readonly meter: Pick<Meter, 'count'>;
  /** Release that makes renderings: `releaseWithEffort`. */
  readonly release: string;
}

/** Results: in memory, and behind that in a store that outlives the process, if there is one. */
export class Results {
  readonly #parts: ResultsParts;

  constructor(parts: ResultsParts) {
    this.#parts = parts;
  }

  /** Whether results outlive the process, and are shared. */
  get isPersistent(): boolean {
    return this.#parts.store !== undefined;
  }

  /** A result in memory, of whatever state of its original. */
  get(key: string): MediaResult | undefined {
    return this.#parts.cache.get(key);
  }

  /** The same, counted for the operator. */
  lookUp(key: string): MediaResult | undefined {
    const { cache, meter } = this.#parts;
    const known = cache.get(key);
    meter.count(known === undefined ? 'cacheMisses' : 'cacheHits', 'results');
    return known;
  }

  /**
   * A result of this state of the original: from memory, or from the store, to be kept in memory again.
   *
   * @throws `task.signal.reason`
   */
  async find(task: RenderTask, identity: OriginalIdentity): Promise<MediaResult | undefined> {
    const { cache, store } = this.#parts;
    const { key, signal, trace } = task;
    const known = cache.get(key);
    if (known?.originalEtag === identity.etag) return known;
    if (store === undefined || !task.original.backend.remembers) return undefined;
    const stored = await trace.stage('store', async (details) => {
      const found = await store.find(this.#addressOf(task, identity), signal);
      details.memory = 'store';
      details.found = found !== undefined;
      if (found !== undefined) details.bytes = found.body.byteLength;
      return found;
    });
    if (stored === undefined) return undefined;
    const result = this.#createResult(stored, identity, key);
    task.original.keep(() => cache.set(key, result));
    return result;
  }

  /**
   * Keeps a result in memory, and a rendering in the store as well: an original that was not rendered would only
   * be read from another place there. What a purge has made out of date is not kept.
   *
   * @returns `isKept`: in memory
   */
  keep(
    task: RenderTask,
    identity: OriginalIdentity,
    made: StoredResult,
    { isRendering }: { readonly isRendering: boolean },
  ): { readonly result: MediaResult; readonly isKept: boolean | undefined } {
    const { cache, store } = this.#parts;
    const result = this.#createResult(made, identity, task.key);
    const isKept = task.original.keep(() => {
      if (isRendering) store?.add(this.#addressOf(task, identity), made, task.trace);
      return cache.set(task.key, result).has(task.key);
    });
    return { result, isKept };
  }

  forget(fits: (key: string) => boolean): number {
    return deleteWhere(this.#parts.cache, fits);
  }

  /** The validators of the result of a request, `key`, before it is made. */
  validatorsOf(identity: OriginalIdentity, key: string): Validators & { readonly etag: string } {
    return validatorsOf(identity, key, this.#parts.release);
  }

  #createResult(made: StoredResult, identity: OriginalIdentity, key: string): MediaResult {
    const { body, mimeType } = made;
    return { body, mimeType, ...this.validatorsOf(identity, key), originalEtag: identity.etag };
  }

  #addressOf({ key, request }: RenderTask, { etag }: OriginalIdentity): ResultAddress {
    const { release } = this.#parts;
    return { originKey: request.originKey, key, originalEtag: etag, release };
  }
}

/**
 * Returns the validators of a response (contract §4), which are known as soon as the original's identity is.
 *
 * @param key the canonical request's `resultKey`
 * @param release of the pipeline that makes the response
 */
export function validatorsOf(
  { etag, lastModified }: OriginalIdentity,
  key: string,
  release: string,
): Validators & { readonly etag: string } {
  const hash = createHash('sha256')
    .update(JSON.stringify([etag, key, release]))
    .digest('base64url');
  // 132 of 256 bits: no two responses ever meet by chance, and the header stays short.
  return { etag: `"${hash.slice(0, 22)}"`, lastModified };
}
