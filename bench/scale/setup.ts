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
  /** One bucket for all, bounded by age. */
  | { readonly kind: 's3'; readonly maxAgeDays: number };

/** The cache of the proxy in front. */
export type EdgeSetup =
  | { readonly kind: 'none' }
  | { readonly kind: 'lru'; readonly maxBytes: number }
  /**
   * Answers this share of requests whatever they ask for. A real one answers popular ones above all,
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
