import {
  type CachedMetadata,
  formatCachedMetadata,
  type MetadataOutcome,
  metadataOutcomes,
  parseCachedMetadata,
} from '../../contract/metadata.ts';
import { encodeOriginKey, type ResultAddress } from '../../contract/result-key.ts';
import type { GuardedStore } from '../results/store.ts';
import { type Backend, isNamespaced } from './backend.ts';
import type { OriginalRecords } from './records.ts';

interface StoredDetails {
  readonly metadata: CachedMetadata;
  readonly sha256: string;
  readonly removal: MetadataOutcome;
}

interface DetailRow<Detail> {
  readonly mimeType: string;
  /** Whether the detail depends on the pipeline release; others survive upgrades. */
  readonly isOfRelease: boolean;
  readonly format: (detail: Detail) => Uint8Array;
  readonly parse: (body: Uint8Array) => Detail | undefined;
}

const rows: { readonly [Name in keyof StoredDetails]: DetailRow<StoredDetails[Name]> } = {
  metadata: {
    mimeType: 'application/json',
    isOfRelease: true,
    format: formatCachedMetadata,
    parse: parseCachedMetadata,
  },
  sha256: {
    mimeType: 'text/plain',
    isOfRelease: false,
    format: (sha256) => Buffer.from(sha256),
    parse: (body) => /^[\da-f]{64}$/.exec(Buffer.from(body).toString())?.[0],
  },
  removal: {
    mimeType: 'text/plain',
    isOfRelease: false,
    format: (outcome) => Buffer.from(outcome),
    parse: (body) => {
      const text = Buffer.from(body).toString();
      return metadataOutcomes.find((outcome) => outcome === text);
    },
  },
};

/** An original; `commit` drops writes after a purge. */
export interface DetailSubject {
  readonly originKey: string;
  readonly commit?: (write: () => void) => unknown;
  /** Omit for the storage. */
  readonly backend?: Pick<Backend, 'remembers'>;
}

/** Details of one state of an original, in the records and next to the results in the store. */
export class DetailStore {
  readonly #records: OriginalRecords;
  readonly #store: GuardedStore | undefined;
  readonly #release: string;

  constructor(records: OriginalRecords, store: GuardedStore | undefined, release: string) {
    this.#records = records;
    this.#store = store;
    this.#release = release;
  }

  /** @throws `signal.reason` */
  async find<Name extends keyof StoredDetails>(
    subject: DetailSubject,
    etag: string,
    name: Name,
    signal: AbortSignal,
  ): Promise<Partial<StoredDetails>[Name] | undefined> {
    const details: Partial<StoredDetails> =
      this.#records.findDetails(subject.originKey, etag) ?? {};
    const known = details[name];
    if (known !== undefined || this.#store === undefined || !isStored(subject)) return known;
    const stored = await this.#store.find(this.#addressOf(subject, etag, name), signal);
    const detail = stored && rows[name].parse(stored.body);
    if (detail !== undefined) this.#remember(subject, etag, name, detail);
    return detail;
  }

  put<Name extends keyof StoredDetails>(
    subject: DetailSubject,
    etag: string,
    name: Name,
    detail: StoredDetails[Name],
  ): void {
    if (this.#records.findDetails(subject.originKey, etag)?.[name] === detail) return;
    this.#remember(subject, etag, name, detail);
    this.store(subject, etag, name, detail);
  }

  /** Stores a detail even if it is in memory, since a purge removes it only from the store. */
  store<Name extends keyof StoredDetails>(
    subject: DetailSubject,
    etag: string,
    name: Name,
    detail: StoredDetails[Name],
  ): void {
    const { format, mimeType } = rows[name];
    if (!isStored(subject)) return;
    commit(subject, () =>
      this.#store?.add(this.#addressOf(subject, etag, name), { body: format(detail), mimeType }),
    );
  }

  #remember<Name extends keyof StoredDetails>(
    subject: DetailSubject,
    etag: string,
    name: Name,
    detail: StoredDetails[Name],
  ): void {
    commit(subject, () => this.#records.noteDetails(subject.originKey, etag, { [name]: detail }));
  }

  #addressOf(
    { originKey }: DetailSubject,
    originalEtag: string,
    name: keyof StoredDetails,
  ): ResultAddress {
    const cacheKey = `${encodeOriginKey(originKey)}?${name}`;
    const release = rows[name].isOfRelease ? this.#release : '';
    return { originKey, cacheKey, originalEtag, release };
  }
}

function commit(subject: DetailSubject, write: () => void): void {
  if (subject.commit === undefined) write();
  else subject.commit(write);
}

function isStored({ originKey, backend }: DetailSubject): boolean {
  return backend?.remembers !== false && !isNamespaced(originKey);
}
