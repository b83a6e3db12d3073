import type { Config } from '../config/config.ts';
import type { SharedObjects } from '../pipeline/blocks/ports.ts';
import type { OriginalWriter } from '../pipeline/originals/original-writer.ts';
import type { Log, OriginListing, ResultStore, Source } from '../pipeline/ports.ts';

export type Kind = Config['storage']['kind'];

export type PlaceOf<Place, K> = Extract<Place, { readonly kind: K }>;

export type OriginalsPlace = Config['storage'] | NonNullable<Config['uploads']>;
export type ResultsPlace = NonNullable<Config['resultStore']>;
export type ListPlace = NonNullable<Config['blocklist']>['place'];

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
    place: PlaceOf<OriginalsPlace, K>,
    originLimits: Config['originLimits'],
  ): Promise<OpenedStorage>;
  /** @param isInUse whether the service may use the store: then it is not swept @throws Error for its directory */
  openResults(place: PlaceOf<ResultsPlace, K>, log: Log, isInUse: boolean): Promise<ResultStore>;
  /** @throws Error if a directory is missing */
  openShared(place: PlaceOf<ListPlace, K>): Promise<SharedObjects>;
}
