import type { Answer, LoadResult } from '../harness/load.ts';
import type { CpuSeconds } from '../harness/process-numbers.ts';

/** What is chosen for a run. */
export interface OverloadOptions {
  /** Length of each phase that is compared. */
  readonly phaseMs: number;
  /** How often the phases alternate. */
  readonly rounds: number;
  readonly workers: number;
  /** Animated renders arrive at so many times the capacity, in phases of their own; the greatest last. */
  readonly factors: readonly number[];
  readonly logFile: string;
}

/** What was measured in one phase. */
export interface Phase {
  /** Times the capacity of animated renders; 0 while the others are alone. */
  readonly factor: number;
  readonly lengthMs: number;
  readonly hits: LoadResult;
  /** Light renders that were done within the phase. */
  readonly light: readonly Answer[];
  readonly heavy: LoadResult | undefined;
  readonly mainPeakBytes: number;
  /** CPU seconds; `others`: of all that runs on this machine and is none of our business. */
  readonly cpu: CpuSeconds & { readonly generators: number; readonly others: number };
}

/** All that a run has brought to light. */
export interface OverloadRun {
  readonly options: OverloadOptions;
  /** Whether hits were asked for by a process that ran before all others. */
  readonly isHitClientPreferred: boolean;
  /** Hits while nothing else is asked. */
  readonly quietHits: LoadResult;
  /** Animated renders a second, with nothing else to do. */
  readonly heavyCapacityPerSecond: number;
  /** Their latencies then. */
  readonly heavyAlone: readonly Answer[];
  readonly phases: readonly Phase[];
}

/** Answers with the image that was asked for. */
export function countServed(answers: readonly Answer[]): number {
  return answers.filter(({ status }) => status === 200).length;
}
