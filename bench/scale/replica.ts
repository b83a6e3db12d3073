import { ByteCache } from './byte-cache.ts';
import type { Workload } from './workload.ts';

/** Where a request is served; each in one of them. */
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
  'streamed',
  /** Deleted: a 404 of the origin. */
  'missing',
] as const;

/** What was counted over a span of time. */
export interface Counts {
  requests: number;
  readonly tiers: Record<(typeof tiers)[number], number>;
  /** Bodies read from the origin. */
  originReads: number;
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
    tiers: Object.fromEntries(tiers.map((tier) => [tier, 0])) as Counts['tiers'],
    originReads: 0,
    revalidations: 0,
    renders: 0,
    renderCpuMs: 0,
    storeWrites: 0,
    bytesServed: 0,
  };
}

/**
 * What an entry in memory takes besides its body: an estimate of the service's own (`memory-cache.ts`),
 * and a key of some 100 characters.
 */
const ENTRY_OVERHEAD_BYTES = 512 + 200;

/** Bounds of one replica, in bytes and seconds. */
export interface ReplicaBounds {
  readonly memoryBytes: number;
  readonly originalsBytes: number;
  readonly revalidateS: number;
}

/** One replica: its memory, its originals, and a result store, its own or one for all. */
export class Replica {
  readonly #workload: Workload;
  readonly #memory: ByteCache;
  readonly #originals: ByteCache;
  readonly #store: ByteCache | undefined;
  readonly #revalidateS: number;
  /** When the origin last reported the state of each original. */
  readonly #checkedS: Float32Array;

  constructor(workload: Workload, bounds: ReplicaBounds, store: ByteCache | undefined) {
    this.#workload = workload;
    this.#memory = new ByteCache(bounds.memoryBytes);
    this.#originals = new ByteCache(bounds.originalsBytes);
    this.#store = store;
    this.#revalidateS = bounds.revalidateS;
    this.#checkedS = new Float32Array(workload.originalBytes.length).fill(Number.NEGATIVE_INFINITY);
  }

  /**
   * Serves a request for a rendering that exists, and counts it in exactly one tier. Renders are done at
   * once: requests that would have waited for one together find it in memory.
   */
  serve(rendering: number, nowS: number, counts: Counts): void {
    const { facts, originals, originalBytes } = this.#workload;
    const { work, cpuMs, bytes } = facts[rendering] ?? { work: 'stream', cpuMs: 0, bytes: 0 };
    const original = originals[rendering] ?? 0;
    counts.bytesServed += bytes;
    if (work === 'stream') {
      counts.tiers.streamed += 1;
      this.#readOrigin(original, nowS, counts);
      return;
    }
    if (this.#memory.touch(rendering)) {
      counts.tiers.memory += 1;
      this.#revalidate(original, nowS, counts);
      return;
    }
    if (this.#store?.touch(rendering) === true) {
      counts.tiers.store += 1;
      // Which result is the current one depends on the state of the original.
      this.#revalidate(original, nowS, counts);
    } else {
      if (this.#originals.touch(original)) {
        counts.tiers['held original'] += 1;
        this.#revalidate(original, nowS, counts);
      } else {
        counts.tiers.origin += 1;
        // Before the store is looked into, the origin is asked for one byte; then, in vain, for all.
        if (this.#store !== undefined) this.#revalidate(original, nowS, counts);
        this.#readOrigin(original, nowS, counts);
        this.#originals.add(original, originalBytes[original] ?? 0);
      }
      if (work === 'render') {
        counts.renders += 1;
        counts.renderCpuMs += cpuMs;
        // What needs no work is not worth a place in the store.
        if (this.#store?.add(rendering, bytes) === true) counts.storeWrites += 1;
      }
    }
    this.#memory.add(rendering, bytes + ENTRY_OVERHEAD_BYTES);
  }

  #readOrigin(original: number, nowS: number, counts: Counts): void {
    counts.originReads += 1;
    this.#checkedS[original] = nowS;
  }

  #revalidate(original: number, nowS: number, counts: Counts): void {
    if (nowS - (this.#checkedS[original] ?? 0) < this.#revalidateS) return;
    counts.revalidations += 1;
    this.#checkedS[original] = nowS;
  }
}
