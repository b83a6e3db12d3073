import { ByteLru, type ByteStore } from './byte-lru.ts';
import type { Counts } from './counts.ts';
import type { Workload } from './workload.ts';

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

/** One replica: its memory, its originals, and a result store, its own or everybody's. */
export class Replica {
  readonly #workload: Workload;
  readonly #memory: ByteLru;
  readonly #originals: ByteLru;
  readonly #store: ByteStore | undefined;
  readonly #revalidateS: number;
  /** When the origin last told the state of each original. */
  readonly #checkedS: Float32Array;

  constructor(workload: Workload, bounds: ReplicaBounds, store: ByteStore | undefined) {
    this.#workload = workload;
    this.#memory = new ByteLru(bounds.memoryBytes);
    this.#originals = new ByteLru(bounds.originalsBytes);
    this.#store = store;
    this.#revalidateS = bounds.revalidateS;
    this.#checkedS = new Float32Array(workload.originalBytes.length).fill(Number.NEGATIVE_INFINITY);
  }

  /**
   * Answers a request for a rendering that exists, and counts it in exactly one tier. Renders are done at
   * once: those who would have waited for one together find it in memory.
   */
  serve(rendering: number, nowS: number, counts: Counts): void {
    const { facts, originals, originalBytes } = this.#workload;
    const { work, cpuMs, bytes } = facts[rendering] ?? { work: 'passthrough', cpuMs: 0, bytes: 0 };
    const original = originals[rendering] ?? 0;
    counts.bytesServed += bytes;
    if (work === 'passthrough') {
      counts.tiers.passthrough += 1;
      this.#readOrigin(original, nowS, counts);
      return;
    }
    if (this.#memory.touch(rendering)) {
      counts.tiers.memory += 1;
      this.#revalidate(original, nowS, counts);
      return;
    }
    if (this.#store?.touch(rendering, nowS) === true) {
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
        if (this.#store?.add(rendering, bytes, nowS) === true) counts.storeWrites += 1;
      }
    }
    this.#memory.add(rendering, bytes + ENTRY_OVERHEAD_BYTES);
  }

  #readOrigin(original: number, nowS: number, counts: Counts): void {
    counts.originReads += 1;
    counts.originReadBytes += this.#workload.originalBytes[original] ?? 0;
    this.#checkedS[original] = nowS;
  }

  #revalidate(original: number, nowS: number, counts: Counts): void {
    if (nowS - (this.#checkedS[original] ?? 0) < this.#revalidateS) return;
    counts.revalidations += 1;
    this.#checkedS[original] = nowS;
  }
}
