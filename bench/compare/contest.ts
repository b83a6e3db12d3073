import type { MeasureName, Turn } from './measures.ts';

/** All turns of one contestant in one workload. */
export interface Entry {
  readonly name: string;
  readonly turns: readonly Turn[];
}

/** A workload, and who was how good at it. */
export interface Contest {
  readonly name: string;
  /** What a reader has to know of it. */
  readonly note: string;
  /** What was measured; the first decides. */
  readonly measures: readonly MeasureName[];
  readonly entries: readonly Entry[];
}

/** Somebody who takes part. */
export interface Player {
  readonly name: string;
  /** @param round 0 is for practice, and not counted */
  readonly play: (round: number) => Promise<Turn>;
  readonly leave: () => Promise<unknown>;
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
        const turn = await player.play(round);
        if (round > 0) turns[index]?.push(turn);
      }
    }
  } finally {
    for (const player of players) await player.leave();
  }
  return {
    ...plan,
    entries: players.map(({ name }, index) => ({ name, turns: turns[index] ?? [] })),
  };
}
