import type { Burst } from './clients.ts';
import { isStruck, type Wave } from './faults/waves.ts';
import type { Visit } from './visit.ts';

/** A burst is still felt for so long, in milliseconds: what it left in the queue waits up to 5 s. */
const BURST_SHADOW_MS = 6_000;

/** What was done to the service, and when. */
export interface Circumstances {
  readonly waves: readonly Wave[];
  readonly bursts: readonly Burst[];
}

/** What is to be thought of a visit. */
export type Verdict =
  | { readonly kind: 'expected' }
  /** The origin was made to fail just then. */
  | { readonly kind: 'origin' }
  /** Too much was asked just then. */
  | { readonly kind: 'burst' }
  /** A heavy render was turned away without a burst: allowed, if it is seldom. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'unexpected'; readonly reason: string };

/** Compares a visit with the contract, given what was done to the service meanwhile. */
export function judgeVisit(visit: Visit, circumstances: Circumstances): Verdict {
  const { ending, lie, status, code, failure, render, expected } = visit;
  const blameOrigin = (reason: string): Verdict =>
    isOriginStruck(visit, circumstances) ? { kind: 'origin' } : { kind: 'unexpected', reason };
  if (lie !== undefined) return { kind: 'unexpected', reason: lie };
  if (ending === 'hung') return { kind: 'unexpected', reason: 'no end' };
  if (ending === 'unanswered') return { kind: 'unexpected', reason: `no response: ${failure}` };
  if (ending === 'broken') return blameOrigin(`broken off: ${failure}`);
  if (status === 502 || (status === 504 && code !== 'TRANSFORM_TIMEOUT')) {
    return blameOrigin(`${status} ${code}`);
  }
  // What waits for a storage that responds late keeps its place for so long.
  if (status === 503 && isOriginStruck(visit, circumstances)) {
    return { kind: 'origin' };
  }
  if (status === undefined || expected.includes(status)) return { kind: 'expected' };
  if (status === 503 && render !== 'none') {
    if (isInBurst(visit, circumstances)) return { kind: 'burst' };
    if (render === 'heavy') return { kind: 'refused' };
  }
  return { kind: 'unexpected', reason: `${status} ${code ?? ''}`.trimEnd() };
}

/** Whether there is, or might be, an original behind it that could not be read just then. */
function isOriginStruck(
  { needsOrigin, startedMs, endedMs }: Visit,
  { waves }: Circumstances,
): boolean {
  return needsOrigin && isStruck(waves, startedMs, endedMs);
}

/** Whether too much was asked meanwhile. */
function isInBurst({ startedMs, endedMs }: Visit, { bursts }: Circumstances): boolean {
  return bursts.some(
    (burst) => startedMs < burst.endMs + BURST_SHADOW_MS && endedMs > burst.startMs,
  );
}
