const GIBIBYTE = 2 ** 30;

/** A store that keeps all: a bucket's rule removes results after a month, and no model is that long. */
export const BUCKET = Number.POSITIVE_INFINITY;

/**
 * A deployment, in its real sizes. Replicas that share the keys by consistent hashing are like one of their size in
 * all, so there is one memory and one store in the model.
 */
export interface Setup {
  readonly requestsPerDay: number;
  readonly replicas: number;
  /** `CACHE_MEMORY_BYTES` of each replica. */
  readonly memoryBytes: number;
  /** Originals read just now, of each replica. */
  readonly originalsBytes: number;
  /** Of the store where results outlive the memory: a disk of each machine, or one `BUCKET` for all; 0 is none. */
  readonly storeBytes: number;
  /** The cache of the proxy in front; 0 where there is none. */
  readonly edgeBytes: number;
  /** `CACHE_REVALIDATE_SECONDS`. */
  readonly revalidateS: number;
}

/** What a setup has where nothing else is said. */
export const DEFAULT_SETUP: Setup = {
  requestsPerDay: 10_000_000,
  replicas: 1,
  memoryBytes: GIBIBYTE / 4,
  originalsBytes: GIBIBYTE / 16,
  storeBytes: 0,
  edgeBytes: 0,
  revalidateS: 300,
};

/** The default size, with results in a bucket. */
const BUCKET_SETUP: Setup = { ...DEFAULT_SETUP, storeBytes: BUCKET };

/** More and more memory, with each store. */
export function memorySetups(requestsPerDay: number): readonly Setup[] {
  return [0, 20 * GIBIBYTE, BUCKET].flatMap((storeBytes) =>
    [1 / 16, 1 / 4, 1, 4, 16].map((gibibytes) => {
      const memoryBytes = gibibytes * GIBIBYTE;
      return { ...DEFAULT_SETUP, requestsPerDay, memoryBytes, storeBytes };
    }),
  );
}

/** A proxy with more and more cache in front. */
export function edgeSetups(requestsPerDay: number): readonly Setup[] {
  return [1, 10, 50, 100, 200].map((gibibytes) => ({
    ...BUCKET_SETUP,
    requestsPerDay,
    edgeBytes: gibibytes * GIBIBYTE,
  }));
}

/**
 * What is advised per million, ten, a hundred and a thousand million requests a day. An edge twice as large costs
 * disks, half as many misses cores; where it is counted in TiB, disks win.
 */
export const sizingSetups: readonly Setup[] = [
  { requestsPerDay: 1e6, replicas: 2, edgeBytes: 20 * GIBIBYTE },
  { requestsPerDay: 1e7, replicas: 2, edgeBytes: 200 * GIBIBYTE },
  { requestsPerDay: 1e8, replicas: 6, edgeBytes: 1_024 * GIBIBYTE },
  { requestsPerDay: 1e9, replicas: 50, edgeBytes: 10_240 * GIBIBYTE },
].map((advice) => ({ ...BUCKET_SETUP, ...advice }));
