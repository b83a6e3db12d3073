/** How requests come to replicas. */
export type Balancing =
  /** By consistent hashing of the path: all sizes of an original go to one replica. */
  | 'path'
  /** By consistent hashing of path and parameters: each rendering goes to one replica. */
  | 'key'
  /** To any replica. */
  | 'random';

/** Where results outlive the memory. */
export type StoreSetup =
  | { readonly kind: 'none' }
  /** On the disk of each machine, bounded by bytes. */
  | { readonly kind: 'filesystem'; readonly maxBytes: number }
  /** One bucket for all. It keeps all: its rule removes results after a month, and no model is that long. */
  | { readonly kind: 's3' };

/** The cache of the proxy in front. */
export type EdgeSetup =
  | { readonly kind: 'none' }
  | { readonly kind: 'lru'; readonly maxBytes: number }
  /**
   * Serves this share of requests whatever they ask for. A real one serves popular ones above all,
   * and so leaves less to the memory behind it.
   */
  | { readonly kind: 'ratio'; readonly ratio: number };

/** A deployment, in its real sizes. */
export interface Setup {
  readonly requestsPerDay: number;
  readonly replicas: number;
  readonly balancing: Balancing;
  /** `CACHE_MEMORY_BYTES` of each replica. */
  readonly memoryBytes: number;
  /** Originals read just now, of each replica. */
  readonly originalsBytes: number;
  readonly store: StoreSetup;
  readonly edge: EdgeSetup;
  /** `CACHE_REVALIDATE_SECONDS`. */
  readonly revalidateS: number;
}

/** What a setup has where nothing else is said. */
export const DEFAULT_SETUP: Setup = {
  requestsPerDay: 10_000_000,
  replicas: 1,
  balancing: 'path',
  memoryBytes: 256 * 2 ** 20,
  originalsBytes: 64 * 2 ** 20,
  store: { kind: 'none' },
  edge: { kind: 'none' },
  revalidateS: 300,
};

const MEBIBYTE = 2 ** 20;
const GIBIBYTE = 2 ** 30;

/** Stores that are compared: a disk of each machine, and a bucket. */
export const stores = {
  none: { kind: 'none' },
  filesystem: { kind: 'filesystem', maxBytes: 20 * GIBIBYTE },
  s3: { kind: 's3' },
} as const satisfies Readonly<Record<string, StoreSetup>>;

/** One replica with more and more memory, with each store. */
export function memorySetups(requestsPerDay: number): readonly Setup[] {
  const memories = [64 * MEBIBYTE, 256 * MEBIBYTE, GIBIBYTE, 4 * GIBIBYTE, 16 * GIBIBYTE];
  return Object.values(stores).flatMap((store) =>
    memories.map((memoryBytes) => ({ ...DEFAULT_SETUP, requestsPerDay, memoryBytes, store })),
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
    [1, 2, 5, 10, 20, 50]
      .filter((replicas) => replicas > 1 || way.balancing === 'path')
      .map((replicas) => ({ ...DEFAULT_SETUP, requestsPerDay, ...way, replicas })),
  );
}

/** A proxy with more and more cache before one replica. */
export function edgeSetups(requestsPerDay: number): readonly Setup[] {
  return [1, 10, 50, 100, 200].map((gibibytes) => ({
    ...DEFAULT_SETUP,
    requestsPerDay,
    store: stores.s3,
    edge: { kind: 'lru', maxBytes: gibibytes * GIBIBYTE },
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
