import { Random } from '../harness/random.ts';
import { DAY_S } from '../trace/assumptions.ts';
import { ByteCache } from './byte-cache.ts';
import { HashRing, hashPair } from './hash-ring.ts';
import { type Counts, emptyCounts, Replica } from './replica.ts';
import type { Setup } from './setups.ts';
import type { Workload } from './workload.ts';

/** What came of a simulation, in the real sizes of the setup. */
export interface Simulation {
  readonly setup: Setup;
  /** The model is so many times smaller than the setup: its requests, its content and all bounds. */
  readonly scale: number;
  /** Of the measured span; as counted in the model. */
  readonly counts: Counts;
  /** Requests of the busiest replica beside the mean of all. */
  readonly busiest: number;
  /** In all result stores together at the end. */
  readonly storeBytes: number;
  /** By how much that grew over the measured span, a day. */
  readonly storeBytesPerDay: number;
}

/**
 * Replicas that share the keys by hashing are independent of each other, and several of them are like one
 * of their size in all; so that no cache of a small model is too small for a single picture, they are
 * put together until each has that much.
 */
const LEAST_MEMORY_BYTES = 4 * 2 ** 20;

/**
 * Sends a trace through a setup that is scaled down to it. With popularities by Zipf's law with an
 * exponent below 1, the hit ratio of a LRU depends on the ratio of its size to all content (Fricker,
 * Robert, Roberts, "A versatile and accurate approximation for LRU cache performance", ITC 2012), so
 * a model with all of these divided by one number has the same (as in SHARDS, Waldspurger et al.,
 * FAST 2015). Time is not scaled: there are as many times fewer originals as there are requests.
 *
 * @param fromDay what comes before fills the caches, and is not counted
 */
export function simulate(workload: Workload, setup: Setup, fromDay: number): Simulation {
  const { trace } = workload;
  const scale = (setup.requestsPerDay * trace.options.days) / trace.options.requests;
  const fleet = new Fleet(workload, setup, scale);
  const all = emptyCounts();
  const counts = emptyCounts();
  const fromS = fromDay * DAY_S;
  const served = new Float64Array(setup.replicas);
  let deletion = 0;
  let storeBytesBefore: number | undefined;
  for (const [index, nowS] of trace.seconds.entries()) {
    for (let next = trace.deletions[deletion]; next !== undefined && next.seconds <= nowS; ) {
      fleet.forget(next.original);
      deletion += 1;
      next = trace.deletions[deletion];
    }
    const isMeasured = nowS >= fromS;
    if (isMeasured) storeBytesBefore ??= fleet.storeBytes;
    const replica = fleet.serve(trace.renderings[index] ?? 0, nowS, isMeasured ? counts : all);
    if (replica >= 0 && isMeasured) served[replica] = (served[replica] ?? 0) + 1;
  }
  const spanDays = Math.max(trace.options.days - fromDay, Number.EPSILON);
  const servedInAll = served.reduce((sum, one) => sum + one, 0);
  return {
    setup,
    scale,
    counts,
    busiest: servedInAll === 0 ? 1 : (Math.max(...served) * setup.replicas) / servedInAll,
    storeBytes: fleet.storeBytes * scale,
    storeBytesPerDay: ((fleet.storeBytes - (storeBytesBefore ?? 0)) * scale) / spanDays,
  };
}

/** All replicas of a setup, and what is in front of them. */
class Fleet {
  readonly #workload: Workload;
  readonly #setup: Setup;
  readonly #replicas: readonly Replica[];
  readonly #stores: readonly ByteCache[];
  readonly #edge: ByteCache | undefined;
  /** For each rendering: which of `#replicas`, and which of those of the setup. */
  readonly #home: { readonly model: Int32Array; readonly real: Int32Array } | undefined;
  readonly #renderingsOf = new Map<number, number[]>();
  readonly #random = new Random(7);

  constructor(workload: Workload, setup: Setup, scale: number) {
    this.#workload = workload;
    this.#setup = setup;
    const { edge, balancing, replicas, store } = setup;
    const isHashed = balancing !== 'random';
    const memoryBytes = (setup.memoryBytes * replicas) / scale;
    const count = isHashed
      ? Math.min(replicas, Math.max(1, Math.floor(memoryBytes / LEAST_MEMORY_BYTES)))
      : replicas;
    const share = replicas / count / scale;
    const bucket = store.kind === 's3' ? new ByteCache(Number.POSITIVE_INFINITY) : undefined;
    const bounds = {
      memoryBytes: setup.memoryBytes * share,
      originalsBytes: setup.originalsBytes * share,
      revalidateS: setup.revalidateS,
    };
    const stores = Array.from({ length: count }, () =>
      store.kind === 'filesystem' ? new ByteCache(store.maxBytes * share) : bucket,
    );
    this.#replicas = stores.map((own) => new Replica(workload, bounds, own));
    this.#stores = [...new Set(stores)].filter((own) => own !== undefined);
    this.#edge = edge.kind === 'lru' ? new ByteCache(edge.maxBytes / scale) : undefined;
    this.#home = isHashed ? { model: this.#hash(count), real: this.#hash(replicas) } : undefined;
    for (const [rendering, original] of workload.originals.entries()) {
      const known = this.#renderingsOf.get(original);
      if (known === undefined) this.#renderingsOf.set(original, [rendering]);
      else known.push(rendering);
    }
  }

  get storeBytes(): number {
    return this.#stores.reduce((sum, { usedBytes }) => sum + usedBytes, 0);
  }

  /** @returns the replica of the setup that was asked; -1 where none was */
  serve(rendering: number, nowS: number, counts: Counts): number {
    const { edge, replicas } = this.#setup;
    counts.requests += 1;
    const isServed =
      edge.kind === 'ratio' ? this.#random.next() < edge.ratio : this.#edge?.touch(rendering);
    if (isServed === true) {
      counts.tiers.edge += 1;
      return -1;
    }
    const drawn = this.#home === undefined ? Math.floor(this.#random.next() * replicas) : 0;
    const model = this.#home?.model[rendering] ?? drawn;
    const original = this.#workload.originals[rendering] ?? 0;
    const { originals } = this.#workload.trace.catalogue;
    if ((originals[original]?.deletedS ?? 0) <= nowS) {
      counts.tiers.missing += 1;
      counts.revalidations += 1;
    } else {
      this.#replicas[model]?.serve(rendering, nowS, counts);
      this.#edge?.add(rendering, this.#workload.facts[rendering]?.bytes ?? 0);
    }
    return this.#home?.real[rendering] ?? drawn;
  }

  /** Stores are purged of deleted content; memories forget it by themselves. */
  forget(original: number): void {
    for (const rendering of this.#renderingsOf.get(original) ?? []) {
      for (const store of this.#stores) store.remove(rendering);
    }
  }

  #hash(count: number): Int32Array {
    const ring = new HashRing(count);
    const { renderings } = this.#workload.trace.catalogue;
    const byKey = this.#setup.balancing === 'key';
    return Int32Array.from(renderings, ({ original, variant }) =>
      ring.ownerOf(hashPair(original, byKey ? variant + 1 : 0)),
    );
  }
}
