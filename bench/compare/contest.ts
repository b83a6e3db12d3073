import type { LoadGenerator } from '../harness/load-generator.ts';
import { watchOthers } from '../harness/process-numbers.ts';
import type { Contestant } from './contestants.ts';
import type { MeasureName, Turn } from './measures.ts';
import type { Originals } from './originals.ts';

/** What workloads share. */
export interface Stage {
  readonly rounds: number;
  readonly turnMs: number;
  readonly generator: LoadGenerator;
  /** Drawn when they are wanted first. */
  readonly originals: () => Promise<Originals>;
  /** Servers that take part where they are asked for: of other languages, or run by somebody else. */
  readonly peers: readonly Contestant[];
  /** Whether pictures are compared, too, which takes longer than to make them. */
  readonly isLikenessWanted: boolean;
  /** Notes in the report that a contestant did not take part, and why. */
  readonly noteAbsence: (contest: string, who: string, why: string) => void;
}

/** What has to be shown: so many times as good as another contestant, in one contest. */
export interface Aim {
  readonly contest: string;
  readonly of: string;
  readonly to: string;
  readonly atLeast: number;
  /** Why it is not more, where that is a question. */
  readonly reason?: string | undefined;
}

/** Something to be good at; the name is that of its contest. */
export interface Workload {
  readonly name: string;
  readonly aims: readonly Omit<Aim, 'contest'>[];
  /** `undefined` where nothing could be compared on this machine; the stage knows why. */
  readonly hold: (stage: Stage) => Promise<Contest | undefined>;
}

/** All turns of one contestant in one workload. */
export interface Entry {
  readonly name: string;
  readonly turns: readonly Turn[];
}

/** A workload, and how good each contestant was at it. */
export interface Contest {
  readonly name: string;
  /** What a reader has to know of it. */
  readonly note: string;
  /** What was measured; the first decides. */
  readonly measures: readonly MeasureName[];
  readonly entries: readonly Entry[];
}

/** A contestant in one contest. */
export interface Player {
  readonly name: string;
  /** @param round 0 is for practice, and not counted */
  readonly play: (round: number) => Promise<Turn>;
  readonly leave?: () => Promise<unknown>;
}

/** How a contest is held. */
export interface ContestPlan extends Omit<Contest, 'entries'> {
  readonly rounds: number;
  /** Whether a round that is not counted comes first. */
  readonly hasPractice: boolean;
}

/**
 * Has players take turns (A B C A B C), each with all of the machine; all leave at the end, however it comes.
 *
 * @throws Error as players do
 */
export async function holdContest(
  { rounds, hasPractice, ...plan }: ContestPlan,
  players: readonly Player[],
): Promise<Contest> {
  const turns = players.map((): Turn[] => []);
  try {
    for (let round = hasPractice ? 0 : 1; round <= rounds; round += 1) {
      for (const [index, player] of players.entries()) {
        const readOthersShare = watchOthers();
        const turn = await player.play(round);
        if (round > 0) turns[index]?.push({ ...turn, othersShare: readOthersShare() });
      }
    }
  } finally {
    for (const player of players) await player.leave?.();
  }
  return {
    ...plan,
    measures: [...plan.measures, 'othersShare'],
    entries: players.map(({ name }, index) => ({ name, turns: turns[index] ?? [] })),
  };
}
