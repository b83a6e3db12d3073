import type { Config } from '../config/config.ts';
import type { SharedObjects } from '../pipeline/blocks/ports.ts';
import type { Log, ResultStore } from '../pipeline/ports.ts';
import type {
  Backend,
  BlockListLocation,
  Kind,
  LocationOf,
  OpenedStorage,
  OriginalsLocation,
  ResultsLocation,
} from './backend.ts';

/** Storage backends, loaded on demand: the SDK of S3 takes 0.2 s and 25 MB. */
const backends: { readonly [K in Kind]: () => Promise<Backend<K>> } = {
  filesystem: async () => (await import('./filesystem/backend.ts')).filesystem,
  s3: async () => (await import('./s3/backend.ts')).s3,
};

/** @throws Error if the directory of originals or uploads is missing */
export async function openStorage<K extends Kind>(
  location: LocationOf<OriginalsLocation, K> & { readonly kind: K },
  originLimits: Config['originLimits'],
): Promise<OpenedStorage> {
  return (await backends[location.kind]()).openOriginals(location, originLimits);
}

/** @throws Error if the directory cannot be created or read */
export async function openResultStore<K extends Kind>(
  location: LocationOf<ResultsLocation, K> & { readonly kind: K },
  log: Log,
  { isInUse = false } = {},
): Promise<ResultStore> {
  return (await backends[location.kind]()).openResults(location, log, isInUse);
}

/** @throws Error if the directory of the block list is missing */
export async function openSharedObjects<K extends Kind>(
  location: LocationOf<BlockListLocation, K> & { readonly kind: K },
): Promise<SharedObjects> {
  return (await backends[location.kind]()).openShared(location);
}
