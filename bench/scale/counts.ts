/** Who answers a request; each is answered by one of them. */
export const tiers = [
  /** The proxy in front. */
  'edge',
  'memory',
  'store',
  /** Rendered, or passed through, from an original that is still in memory. */
  'held original',
  /** The same after a read from the origin. */
  'origin',
  /** An attachment as it is: streamed from the origin, kept by the edge alone. */
  'passthrough',
  /** Deleted: a 404 of the origin. */
  'missing',
] as const;

/** One of them. */
export type Tier = (typeof tiers)[number];

/** What was counted over a span of time. */
export interface Counts {
  requests: number;
  readonly tiers: Record<Tier, number>;
  /** Bodies read from the origin. */
  originReads: number;
  originReadBytes: number;
  /** Small reads of the origin: is this still current, is it there at all. */
  revalidations: number;
  renders: number;
  renderCpuMs: number;
  storeWrites: number;
  /** Sent by replicas, to the edge or to clients. */
  bytesServed: number;
}

/** Nothing counted yet. */
export function emptyCounts(): Counts {
  return {
    requests: 0,
    tiers: {
      edge: 0,
      memory: 0,
      store: 0,
      'held original': 0,
      origin: 0,
      passthrough: 0,
      missing: 0,
    },
    originReads: 0,
    originReadBytes: 0,
    revalidations: 0,
    renders: 0,
    renderCpuMs: 0,
    storeWrites: 0,
    bytesServed: 0,
  };
}
