import type { Config } from '../config/config.ts';
import type { SharedObjects } from '../pipeline/blocks/ports.ts';
import type { OriginalWriter } from '../pipeline/originals/original-writer.ts';
import type { Log, OriginListing, ResultStore, Source } from '../pipeline/ports.ts';

export type Kind = Config['storage']['kind'];

export type LocationOf<Location, K> = Extract<Location, { readonly kind: K }>;

export type OriginalsLocation = Config['storage'] | NonNullable<Config['uploads']>;
export type ResultsLocation = NonNullable<Config['resultStore']>;
export type BlockListLocation = NonNullable<Config['blocklist']>['location'];

export interface OpenedStorage {
  readonly origin: Source;
  /** Check of `STORAGE_MARKER`, if configured. */
  readonly marker?:
    | { readonly isMissing: boolean; readonly checkInBackground: () => void }
    | undefined;
  openListing(): OriginListing;
  /** @param maxConnections connections for uploads; by default as many as for reading */
  openWriter(maxConnections?: number): OriginalWriter;
  /** @throws Error if the storage refuses or times out */
  remove(key: string, timeoutMs: number): Promise<void>;
}

/** One kind of storage, in each of its roles. */
export interface Backend<K extends Kind> {
  /** @throws Error if a directory is missing */
  openOriginals(
    location: LocationOf<OriginalsLocation, K>,
    originLimits: Config['originLimits'],
  ): Promise<OpenedStorage>;
  /** Opens a result store, and sweeps it unless it is in use by the service. @throws Error for an unusable directory */
  openResults(
    location: LocationOf<ResultsLocation, K>,
    log: Log,
    isInUse: boolean,
  ): Promise<ResultStore>;
  /** @throws Error if a directory is missing */
  openShared(location: LocationOf<BlockListLocation, K>): Promise<SharedObjects>;
}
