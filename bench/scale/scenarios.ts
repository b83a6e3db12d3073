import { DEFAULT_SETUP, type Setup, type StoreSetup } from './setup.ts';

const MEBIBYTE = 2 ** 20;
const GIBIBYTE = 2 ** 30;

/** Stores that are compared: a disk of each machine, and a bucket whose results live a month. */
export const stores = {
  none: { kind: 'none' },
  filesystem: { kind: 'filesystem', maxBytes: 20 * GIBIBYTE },
  s3: { kind: 's3', maxAgeDays: 30 },
} as const satisfies Readonly<Record<string, StoreSetup>>;

const MEMORIES = [64 * MEBIBYTE, 256 * MEBIBYTE, GIBIBYTE, 4 * GIBIBYTE, 16 * GIBIBYTE];
const REPLICAS = [1, 2, 5, 10, 20, 50];
const EDGES = [GIBIBYTE, 10 * GIBIBYTE, 50 * GIBIBYTE, 100 * GIBIBYTE, 200 * GIBIBYTE];

/** One replica with more and more memory, with each store. */
export function memorySetups(requestsPerDay: number): readonly Setup[] {
  return Object.values(stores).flatMap((store) =>
    MEMORIES.map((memoryBytes) => ({ ...DEFAULT_SETUP, requestsPerDay, memoryBytes, store })),
  );
}

/** More and more replicas of the default size, by each way to balance and with each store. */
export function replicaSetups(requestsPerDay: number): readonly Setup[] {
  const ways = [
    { balancing: 'path', store: stores.none },
    { balancing: 'key', store: stores.none },
    { balancing: 'random', store: stores.none },
    { balancing: 'path', store: stores.filesystem },
    { balancing: 'random', store: stores.filesystem },
    { balancing: 'path', store: stores.s3 },
    { balancing: 'random', store: stores.s3 },
  ] as const;
  return ways.flatMap((way) =>
    // One replica is the same by any balancing.
    REPLICAS.filter((replicas) => replicas > 1 || way.balancing === 'path').map((replicas) => ({
      ...DEFAULT_SETUP,
      requestsPerDay,
      ...way,
      replicas,
    })),
  );
}

/** A proxy with more and more cache before one replica. */
export function edgeSetups(requestsPerDay: number): readonly Setup[] {
  return EDGES.map((maxBytes) => ({
    ...DEFAULT_SETUP,
    requestsPerDay,
    store: stores.s3,
    edge: { kind: 'lru', maxBytes },
  }));
}

/** What is advised per million, ten, a hundred and a thousand million requests a day. */
export function sizingSetups(): readonly Setup[] {
  // An edge twice as large costs disks, half as many misses cores; where it is counted in TiB, disks win.
  const advice = [
    { requestsPerDay: 1e6, replicas: 2, edgeBytes: 20 * GIBIBYTE },
    { requestsPerDay: 1e7, replicas: 2, edgeBytes: 200 * GIBIBYTE },
    { requestsPerDay: 1e8, replicas: 6, edgeBytes: 1_024 * GIBIBYTE },
    { requestsPerDay: 1e9, replicas: 50, edgeBytes: 10_240 * GIBIBYTE },
  ];
  return advice.map(({ edgeBytes, ...setup }) => ({
    ...DEFAULT_SETUP,
    ...setup,
    store: stores.s3,
    edge: { kind: 'lru', maxBytes: edgeBytes },
  }));
}
