import { LRUCache } from 'lru-cache';
import { DAY_S } from '../trace/assumptions.ts';
import type { Setup } from './setups.ts';
import type { RenderingFacts, Workload } from './workload.ts';

/**
 * What an entry in memory takes besides its body: an estimate of the service's own (`memory-cache.ts`),
 * and a key of some 100 characters.
 */
const ENTRY_OVERHEAD_BYTES = 512 + 200;

const NOTHING: RenderingFacts = { work: 'stream', cpuMs: 0, bytes: 0 };

/** What was counted over a span of time; each request is served in one tier. */
export type Counts = ReturnType<typeof emptyCounts>;

function emptyCounts() {
  return {
    requests: 0,
    tiers: {
      /** The proxy in front. */
      edge: 0,
      memory: 0,
      store: 0,
      /** Rendered, or passed through, from an original that is still in memory. */
      heldOriginal: 0,
      /** The same after a read from the origin. */
      origin: 0,
      /** An attachment as it is: streamed from the origin, kept by the edge alone. */
      streamed: 0,
      /** Deleted: a 404 of the origin. */
      missing: 0,
    },
    /** Bodies read from the origin. */
    originReads: 0,
    /** Small reads of the origin: is this still current, is it there at all. */
    revalidations: 0,
    renders: 0,
    renderCpuMs: 0,
    /** Sent by replicas, to the edge or to clients. */
    bytesServed: 0,
  };
}

/** What came of a simulation, in the real sizes of the setup. */
export type Simulation = ReturnType<typeof simulate>;

/**
 * Sends a trace through a setup that is scaled down to it. With popularities by Zipf's law with an
 * exponent below 1, the hit ratio of a LRU depends on the ratio of its size to all content (Fricker,
 * Robert, Roberts, "A versatile and accurate approximation for LRU cache performance", ITC 2012), so
 * a model with all of these divided by one number has the same (as in SHARDS, Waldspurger et al.,
 * FAST 2015). Time is not scaled: there are as many times fewer originals as there are requests.
 *
 * @param fromDay what comes before fills the caches, and is not counted
 */
export function simulate(workload: Workload, setup: Setup, fromDay: number) {
  const { trace } = workload;
  const scale = (setup.requestsPerDay * trace.options.days) / trace.options.requests;
  const deployment = createDeployment(workload, setup, scale);
  const counts = emptyCounts();
  const filling = emptyCounts();
  const deletions = [...trace.deletions].reverse();
  let storeBytesBefore: number | undefined;
  for (const [index, nowS] of trace.seconds.entries()) {
    while ((deletions.at(-1)?.seconds ?? Number.POSITIVE_INFINITY) <= nowS) {
      deployment.forget(deletions.pop()?.original ?? -1);
    }
    const isMeasured = nowS >= fromDay * DAY_S;
    if (isMeasured) storeBytesBefore ??= deployment.readStoreBytes();
    deployment.serve(trace.renderings[index] ?? 0, nowS, isMeasured ? counts : filling);
  }
  const spanDays = Math.max(trace.options.days - fromDay, Number.EPSILON);
  const grownBytes = deployment.readStoreBytes() - (storeBytesBefore ?? 0);
  return {
    setup,
    /** The model is so many times smaller than the setup: its requests, its content and all bounds. */
    scale,
    /** Of the measured span; as counted in the model. */
    counts,
    /** In the result store at the end. */
    storeBytes: deployment.readStoreBytes() * scale,
    /** By how much that grew over the measured span, a day. */
    storeBytesPerDay: (grownBytes * scale) / spanDays,
  };
}

/**
 * Sizes of entries by number of rendering or original, the least recently used out first.
 *
 * @param maxBytes 0 keeps nothing: no entry is as small as 1 byte
 */
function createCache(maxBytes: number): LRUCache<number, number> {
  return new LRUCache({
    maxSize: Math.max(1, Math.floor(Math.min(maxBytes, Number.MAX_SAFE_INTEGER))),
    sizeCalculation: (bytes) => Math.max(2, Math.round(bytes)),
  });
}

/**
 * The edge, and all replicas as if they were one: their memory, their originals, their result store. Renders are done
 * at once: requests that would have waited for one together find it in memory.
 */
function createDeployment(workload: Workload, setup: Setup, scale: number) {
  const { trace, originals, originalBytes, facts } = workload;
  const share = setup.replicas / scale;
  const edge = createCache(setup.edgeBytes / scale);
  const memory = createCache(setup.memoryBytes * share);
  const heldOriginals = createCache(setup.originalsBytes * share);
  const store = createCache(setup.storeBytes * share);
  // When the origin last reported the state of each original.
  const checkedS = new Float32Array(originalBytes.length).fill(Number.NEGATIVE_INFINITY);
  const renderingsOf = new Map<number, number[]>();
  for (const [rendering, original] of originals.entries()) {
    renderingsOf.set(original, [...(renderingsOf.get(original) ?? []), rendering]);
  }

  const readOrigin = (original: number, nowS: number, counts: Counts): void => {
    counts.originReads += 1;
    checkedS[original] = nowS;
  };
  const revalidate = (original: number, nowS: number, counts: Counts): void => {
    if (nowS - (checkedS[original] ?? 0) < setup.revalidateS) return;
    counts.revalidations += 1;
    checkedS[original] = nowS;
  };
  const makeResult = (rendering: number, original: number, nowS: number, counts: Counts): void => {
    const { work, cpuMs, bytes } = facts[rendering] ?? NOTHING;
    if (heldOriginals.get(original) !== undefined) {
      counts.tiers.heldOriginal += 1;
      revalidate(original, nowS, counts);
    } else {
      counts.tiers.origin += 1;
      // Before the store is looked into, the origin is asked for one byte; then, in vain, for all.
      if (setup.storeBytes > 0) revalidate(original, nowS, counts);
      readOrigin(original, nowS, counts);
      heldOriginals.set(original, originalBytes[original] ?? 0);
    }
    // What needs no work is not worth a place in the store.
    if (work !== 'render') return;
    counts.renders += 1;
    counts.renderCpuMs += cpuMs;
    store.set(rendering, bytes);
  };
  return {
    /** Serves a request, and counts it in exactly one tier. */
    serve: (rendering: number, nowS: number, counts: Counts): void => {
      const original = originals[rendering] ?? 0;
      const { work, bytes } = facts[rendering] ?? NOTHING;
      counts.requests += 1;
      if (edge.get(rendering) !== undefined) {
        counts.tiers.edge += 1;
        return;
      }
      if ((trace.catalogue.originals[original]?.deletedS ?? 0) <= nowS) {
        counts.tiers.missing += 1;
        counts.revalidations += 1;
        return;
      }
      if (work === 'stream') {
        counts.tiers.streamed += 1;
        readOrigin(original, nowS, counts);
      } else if (memory.get(rendering) !== undefined) {
        counts.tiers.memory += 1;
        revalidate(original, nowS, counts);
      } else {
        if (store.get(rendering) !== undefined) {
          counts.tiers.store += 1;
          // Which result is the current one depends on the state of the original.
          revalidate(original, nowS, counts);
        } else makeResult(rendering, original, nowS, counts);
        memory.set(rendering, bytes + ENTRY_OVERHEAD_BYTES);
      }
      counts.bytesServed += bytes;
      edge.set(rendering, bytes);
    },
    /** Purges the store of deleted content; the memory forgets it by itself. */
    forget: (original: number): void => {
      for (const rendering of renderingsOf.get(original) ?? []) store.delete(rendering);
    },
    readStoreBytes: () => store.calculatedSize,
  };
}
