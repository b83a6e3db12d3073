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

/** Facts of originals that outlive the process. */
interface Facts {
  readonly metadata: CachedMetadata;
  /** Hexadecimal digits. */
  readonly sha256: string;
  /** Outcome of the removal of metadata from the upload. */
  readonly removal: MetadataOutcome;
}

interface FactRow<Fact> {
  readonly mimeType: string;
  /** Whether the fact depends on the pipeline release; others survive upgrades. */
  readonly isOfRelease: boolean;
  readonly format: (fact: Fact) => Uint8Array;
  /** Returns `undefined` for an invalid fact. */
  readonly parse: (body: Uint8Array) => Fact | undefined;
}

const rows: { readonly [Name in keyof Facts]: FactRow<Facts[Name]> } = {
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

/** An original, such as an `OriginalFlight`, which drops writes after a purge. */
export interface FactSubject {
  readonly originKey: string;
  readonly commit?: (write: () => void) => unknown;
  /** Omit for the storage. */
  readonly backend?: Pick<Backend, 'remembers'>;
}

/** Facts of originals, each tied to one state: in the records, and next to the results in the store. */
export class FactStore {
  readonly #records: OriginalRecords;
  readonly #store: GuardedStore | undefined;
  readonly #release: string;

  constructor(records: OriginalRecords, store: GuardedStore | undefined, release: string) {
    this.#records = records;
    this.#store = store;
    this.#release = release;
  }

  /** @throws `signal.reason` */
  async find<Name extends keyof Facts>(
    subject: FactSubject,
    etag: string,
    name: Name,
    signal: AbortSignal,
  ): Promise<Partial<Facts>[Name] | undefined> {
    const details: Partial<Facts> = this.#records.findDetails(subject.originKey, etag) ?? {};
    const known = details[name];
    if (known !== undefined || this.#store === undefined || !isStored(subject)) return known;
    const stored = await this.#store.find(this.#addressOf(subject, etag, name), signal);
    const fact = stored && rows[name].parse(stored.body);
    if (fact !== undefined) this.#remember(subject, etag, name, fact);
    return fact;
  }

  put<Name extends keyof Facts>(
    subject: FactSubject,
    etag: string,
    name: Name,
    fact: Facts[Name],
  ): void {
    if (this.#records.findDetails(subject.originKey, etag)?.[name] === fact) return;
    this.#remember(subject, etag, name, fact);
    this.store(subject, etag, name, fact);
  }

  /** Stores a fact, also if it is in memory: a purge removes it only from the store. */
  store<Name extends keyof Facts>(
    subject: FactSubject,
    etag: string,
    name: Name,
    fact: Facts[Name],
  ): void {
    const { format, mimeType } = rows[name];
    if (!isStored(subject)) return;
    commit(subject, () =>
      this.#store?.add(this.#addressOf(subject, etag, name), { body: format(fact), mimeType }),
    );
  }

  #remember<Name extends keyof Facts>(
    subject: FactSubject,
    etag: string,
    name: Name,
    fact: Facts[Name],
  ): void {
    commit(subject, () => this.#records.noteDetails(subject.originKey, etag, { [name]: fact }));
  }

  #addressOf({ originKey }: FactSubject, originalEtag: string, name: keyof Facts): ResultAddress {
    const key = `${encodeOriginKey(originKey)}?${name}`;
    const release = rows[name].isOfRelease ? this.#release : '';
    return { originKey, key, originalEtag, release };
  }
}

function commit(subject: FactSubject, write: () => void): void {
  if (subject.commit === undefined) write();
  else subject.commit(write);
}

function isStored({ originKey, backend }: FactSubject): boolean {
  return backend?.remembers !== false && !isNamespaced(originKey);
}
