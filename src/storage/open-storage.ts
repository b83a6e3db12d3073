import type { Config } from '../config/config.ts';
import type { SharedObjects } from '../pipeline/blocks/ports.ts';
import type { Log, ResultStore } from '../pipeline/ports.ts';
import type {
  Backend,
  Kind,
  ListPlace,
  OpenedStorage,
  OriginalsPlace,
  PlaceOf,
  ResultsPlace,
} from './backend.ts';

/** Storage backends, loaded on demand: the SDK of S3 takes 0.2 s and 25 MB. */
const backends: { readonly [K in Kind]: () => Promise<Backend<K>> } = {
  filesystem: async () => (await import('./filesystem/backend.ts')).filesystem,
  s3: async () => (await import('./s3/backend.ts')).s3,
};

/** @throws Error if the directory of originals or uploads is missing */
export async function openStorage<K extends Kind>(
  place: PlaceOf<OriginalsPlace, K> & { readonly kind: K },
  originLimits: Config['originLimits'],
): Promise<OpenedStorage> {
  return (await backends[place.kind]()).openOriginals(place, originLimits);
}

/** @throws Error if the directory cannot be created or read */
export async function openResultStore<K extends Kind>(
  place: PlaceOf<ResultsPlace, K> & { readonly kind: K },
  log: Log,
  { isInUse = false } = {},
): Promise<ResultStore> {
  return (await backends[place.kind]()).openResults(place, log, isInUse);
}

/** @throws Error if the directory of the block list is missing */
export async function openSharedObjects<K extends Kind>(
  place: PlaceOf<ListPlace, K> & { readonly kind: K },
): Promise<SharedObjects> {
  return (await backends[place.kind]()).openShared(place);
}
