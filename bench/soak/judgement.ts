import type { Burst } from './clients.ts';
import { type FaultKind, findCulprit, type Wave } from './fault-waves.ts';
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
  | { readonly kind: 'origin'; readonly fault: FaultKind }
  /** Too much was asked just then. */
  | { readonly kind: 'burst' }
  /** A heavy render was turned away without a burst: allowed, if it is seldom. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'unexpected'; readonly reason: string };

/** Compares a visit with the contract, given what was done to the service meanwhile. */
export function judgeVisit(visit: Visit, circumstances: Circumstances): Verdict {
  const { ending, lie, status, failure } = visit;
  if (lie !== undefined) return unexpected(lie);
  switch (ending) {
    case 'hung':
      return unexpected('no end');
    case 'unanswered':
      return unexpected(`no response: ${failure}`);
    case 'broken':
      return blameOrigin(visit, circumstances) ?? unexpected(`broken off: ${failure}`);
    case 'left':
      return status === undefined ? { kind: 'expected' } : judgeStatus(visit, circumstances);
    case 'complete':
      return judgeStatus(visit, circumstances);
  }
}

/** Whether a wave struck the original meanwhile, a harmless one included: then its time means nothing. */
export function isDisturbed(visit: Visit, { waves }: Circumstances): boolean {
  const { originKey, startedMs, endedMs } = visit;
  return (
    originKey !== undefined &&
    findCulprit(waves, originKey, startedMs, endedMs, 'any') !== undefined
  );
}

/** Whether too much was asked meanwhile. */
export function isInBurst({ startedMs, endedMs }: Visit, { bursts }: Circumstances): boolean {
  return bursts.some(
    (burst) => startedMs < burst.endMs + BURST_SHADOW_MS && endedMs > burst.startMs,
  );
}

function judgeStatus(visit: Visit, circumstances: Circumstances): Verdict {
  const { status, code, render, expected } = visit;
  const isOfOrigin = status === 502 || (status === 504 && code !== 'TRANSFORM_TIMEOUT');
  if (isOfOrigin) return blameOrigin(visit, circumstances) ?? unexpected(`${status} ${code}`);
  if (status === undefined || expected.includes(status)) return { kind: 'expected' };
  if (status === 503 && render !== 'none') {
    if (isInBurst(visit, circumstances)) return { kind: 'burst' };
    if (render === 'heavy') return { kind: 'refused' };
  }
  return unexpected(`${status} ${code ?? ''}`.trimEnd());
}

function blameOrigin(
  { originKey, startedMs, endedMs }: Visit,
  { waves }: Circumstances,
): Verdict | undefined {
  if (originKey === undefined) return undefined;
  const culprit = findCulprit(waves, originKey, startedMs, endedMs, 'harmful');
  return culprit && { kind: 'origin', fault: culprit.kind };
}

function unexpected(reason: string): Verdict {
  return { kind: 'unexpected', reason };
}
