import type { MediaError } from '../../contract/errors.ts';
import { readUrl } from '../../contract/external-url.ts';
import { isVideoName } from '../../contract/media-request.ts';
import type { CachedOriginal, Opened, OpenOptions, OriginalIdentity, Unchanged } from '../ports.ts';
import type { Services } from '../services.ts';
import { localUrlOf } from '../site-failure.ts';
import type { Backend, OriginalLocation } from './backend.ts';
import { isDigest } from './digests.ts';
import { contentOf, openBody } from './open-body.ts';
import type { OriginalDetails } from './records.ts';
import { isReplaced } from './replaced.ts';

export interface IdentifiedOriginal {
  readonly identity: OriginalIdentity;
  readonly contactedOrigin: boolean;
  /** Error of a source that cannot confirm the identity; only existing results may then be served. */
  readonly failure?: unknown;
}

/** Memory of one original for one piece of work; it drops writes after a purge. */
export class RememberedOriginal implements OriginalLocation {
  readonly backend: Backend;
  readonly originKey: string;
  readonly sourceKey: string;
  /** Aborts when no request needs the original. */
  readonly signal: AbortSignal;
  protected readonly services: Services;
  #isInvalidated = false;

  constructor(services: Services, location: OriginalLocation, signal: AbortSignal) {
    this.backend = location.backend;
    this.originKey = location.originKey;
    this.sourceKey = location.sourceKey;
    this.signal = signal;
    this.services = services;
  }

  /** Whether the original was purged since the work began; nothing of it is then remembered, joined or served. */
  get isInvalidated(): boolean {
    return this.#isInvalidated;
  }

  invalidate(): void {
    this.#isInvalidated = true;
  }

  /** Runs a write, unless the original was purged since. */
  commit<Result>(write: () => Result): Result | undefined {
    return this.#isInvalidated ? undefined : write();
  }

  /** Runs a write like `commit`, if the backend caches. */
  commitIfRemembered<Result>(write: () => Result): Result | undefined {
    return this.backend.remembers ? this.commit(write) : undefined;
  }

  rememberDetails(etag: string, details: Partial<OriginalDetails>): void {
    this.commit(() => this.services.records.noteDetails(this.originKey, etag, details));
  }

  /** Remembers a failure that the original caused (`Refusals.noteRefusal`). */
  refuse(cacheKey: string | undefined, error: unknown): void {
    const key = this.backend.remembers ? cacheKey : undefined;
    this.commit(() => this.services.refusals.noteRefusal(key, this.originKey, error));
  }

  /** Remembers the error of a read. If the original was replaced, forgets it and invalidates this work. */
  noteError(error: unknown): void {
    const { records, refusals } = this.services;
    if (!isReplaced(error)) {
      this.commitIfRemembered(() => records.noteError(this.originKey, error));
      return;
    }
    this.commitIfRemembered(() => {
      records.forget(this.originKey);
      refusals.forget(this.originKey);
    });
    this.#isInvalidated = true;
  }

  /** Returns a fresh identity or a recent failure from the records. @throws the failure, without an older identity */
  protected findKnown(hasResult: boolean): IdentifiedOriginal | undefined {
    const { records } = this.services;
    const fresh = records.findFresh(this.originKey);
    if (fresh !== undefined) return { identity: fresh, contactedOrigin: false };
    const { withResult, withoutResult } = this.backend.failedForMs;
    const failure = this.findFailure(hasResult ? withResult : withoutResult);
    if (failure === undefined) return undefined;
    const { identity } = records.findLast(this.originKey);
    if (identity === undefined || localUrlOf(failure) !== undefined) throw failure;
    return { identity, contactedOrigin: false, failure };
  }

  protected findFailure(periodMs: number): MediaError | undefined {
    return this.services.records.findFailure(this.originKey, periodMs, this.backend);
  }

  /** Guesses whether the original is a video before it is opened; a wrong guess costs one more read. */
  isLikelyVideo(identity: OriginalIdentity | undefined): boolean {
    const { backend, originKey, sourceKey } = this;
    const name = backend.isExternal ? readUrl(sourceKey)?.pathname : originKey;
    if (isVideoName(name) || identity === undefined) return isVideoName(name);
    if (backend.isExternal) return !isDigest(backend, identity.etag);
    const { records } = this.services;
    return records.findDetails(originKey, identity.etag)?.videoBytes !== undefined;
  }

  /** @throws MediaError of the source */
  async open(range?: OpenOptions['range']): Promise<Opened> {
    return contentOf(this.backend, await this.request({ range }));
  }

  /** Opens the original, or confirms the known state; remembers an error. */
  protected async request(
    options: Pick<OpenOptions, 'known' | 'range'>,
  ): Promise<Opened | Unchanged> {
    const { backend, sourceKey, signal } = this;
    try {
      return await openBody(backend, sourceKey, { ...options, signal, isBuffered: true });
    } catch (error) {
      this.noteError(error);
      throw error;
    }
  }

  protected get cached(): CachedOriginal | undefined {
    return this.services.caches.originals.get(this.originKey);
  }
}
