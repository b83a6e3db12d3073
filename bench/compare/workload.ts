import type { LoadGenerator } from '../harness/load-generator.ts';
import type { Contest } from './contest.ts';
import type { Contestant } from './contestants.ts';
import type { Originals } from './originals.ts';
import type { Aim } from './report.ts';

/** Beside the code, and not part of the repository. */
export const REPORT_FOLDER = 'bench-report';

/** What workloads share. */
export interface Stage {
  readonly rounds: number;
  readonly turnMs: number;
  readonly generator: LoadGenerator;
  /** Drawn when they are wanted first. */
  readonly originals: () => Promise<Originals>;
  /** Servers that somebody else runs. */
  readonly foreign: readonly Contestant[];
  /** Notes in the report that somebody did not take part, and why. */
  readonly excuse: (contest: string, who: string, why: string) => void;
}

/** Something to be good at; the name is that of its contest. */
export interface Workload {
  readonly name: string;
  readonly aims: readonly Omit<Aim, 'contest'>[];
  /** `undefined` where nothing could be compared on this machine; the stage has been told why. */
  readonly hold: (stage: Stage) => Promise<Contest | undefined>;
}
