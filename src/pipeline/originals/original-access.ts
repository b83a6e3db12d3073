import { MediaError } from '../../contract/errors.ts';
import {
  type Opened,
  type OpenOptions,
  type OriginalIdentity,
  ReplacedMeanwhile,
  type Unchanged,
} from '../ports.ts';
import type { Backend, OriginalPlace } from './backend.ts';
import { contentOf, openBody } from './open-body.ts';
import type { OriginalDetails, OriginalRecords } from './records.ts';

/** Access to one original at its source; the records learn what the source tells, and how it fails. */
export class OriginalAccess implements OriginalPlace {
  readonly backend: Backend;
  readonly originKey: string;
  readonly sourceKey: string;
  /** Aborts when no request needs the original any more. */
  readonly signal: AbortSignal;
  readonly records: OriginalRecords;
  isOutdated = false;

  constructor(
    { backend, originKey, sourceKey }: OriginalPlace,
    records: OriginalRecords,
    signal: AbortSignal,
  ) {
    this.backend = backend;
    this.originKey = originKey;
    this.sourceKey = sourceKey;
    this.signal = signal;
    this.records = records;
  }

  /** @throws MediaError of the source */
  async ask(options: Pick<OpenOptions, 'known' | 'range'>): Promise<Opened | Unchanged> {
    const { backend, sourceKey, signal } = this;
    try {
      return await openBody(backend, sourceKey, { ...options, signal, isHeld: true });
    } catch (error) {
      this.noteError(error);
      throw error;
    }
  }

  /** @throws MediaError of the source */
  async open(range?: OpenOptions['range']): Promise<Opened> {
    return contentOf(this.backend, await this.ask({ range }));
  }

  /** Returns a failure of the source within the last `periodMs`. */
  findFailure(periodMs: number): MediaError | undefined {
    return this.records.findFailure(this.originKey, periodMs, this.backend);
  }

  noteFound(opened: Opened): OriginalIdentity {
    const { etag, lastModified } = opened;
    if (etag === undefined) throw new Error('The source has not told the tag of the original.');
    const identity = { etag, lastModified };
    if (!this.isOutdated) this.records.noteFound(this.originKey, identity, opened);
    return identity;
  }

  noteError(error: unknown): void {
    if (this.isOutdated) return;
    const isReplaced = error instanceof MediaError && error.cause instanceof ReplacedMeanwhile;
    if (isReplaced) this.records.forget(this.originKey);
    else this.records.noteError(this.originKey, error);
  }

  noteDetails(etag: string, details: Partial<OriginalDetails>): void {
    if (!this.isOutdated) this.records.noteDetails(this.originKey, etag, details);
  }
}
