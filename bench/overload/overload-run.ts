import type { LoadResponse, LoadResult } from '../harness/load.ts';
import { sumOf } from '../harness/report.ts';
import { type Beside, type StandOptions, TestStand } from './test-stand.ts';

export interface OverloadOptions extends StandOptions {
  /** Animated renders arrive at so many times the capacity, in phases of their own; the greatest last. */
  readonly factors: readonly number[];
}

export interface Phase extends Beside {
  /** Times the capacity of animated renders; 0 while the others are alone. */
  readonly factor: number;
  readonly hits: LoadResult;
  /** Light renders that were done within the phase. */
  readonly light: readonly LoadResponse[];
}

/** All that a run has brought to light. */
export type OverloadRun = Awaited<ReturnType<typeof runOverload>>;

const HITS_PER_SECOND = 50;
const LIGHT_CLIENTS_PER_WORKER = 8;

/** The overload is there before what it is to disturb, and stays longer. */
const HEAD_START_MS = 1_500;

/**
 * Measures hits and light renders, alone and while animated renders come at many times the capacity,
 * in turn and on one running service.
 */
export function runOverload(options: OverloadOptions) {
  const { phaseMs, rounds, factors, workers } = options;
  const floodMs = phaseMs + 2 * HEAD_START_MS;
  const seconds = {
    light: ((1 + factors.length) * rounds * phaseMs) / 1_000,
    heavy: (sumOf(factors, (factor) => factor) * rounds * floodMs) / 1_000,
  };
  return TestStand.use(workers, seconds, 0, async (stand, capacity) => {
    const measure = async () => {
      const [hits, light] = await Promise.all([
        stand.runSteady('hits', HITS_PER_SECOND, phaseMs),
        stand.runClosed('light', LIGHT_CLIENTS_PER_WORKER, phaseMs),
      ]);
      return { hits, light };
    };
    const phases: Phase[] = [];
    for (let round = 0; round < rounds; round += 1) {
      for (const factor of [0, ...factors]) {
        const flood = () => stand.runSteady('heavy', capacity.perSecond * factor, floodMs);
        const beside = factor === 0 ? undefined : flood;
        phases.push({ factor, ...(await stand.measurePhase(measure, HEAD_START_MS, beside)) });
      }
    }
    const { isHitClientPreferred, animationBytes } = stand;
    return { options, isHitClientPreferred, capacity, animationBytes, phases };
  });
}
