import { availableParallelism } from 'node:os';
import { readMachineCpuSeconds, readTreeCpuSeconds } from '../harness/process-numbers.ts';
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
        const othersShare = watchOthers();
        const turn = await player.play(round);
        if (round > 0) turns[index]?.push({ ...turn, othersShare: othersShare() });
      }
    }
  } finally {
    for (const player of players) await player.leave();
  }
  return {
    ...plan,
    measures: [...plan.measures, 'othersShare'],
    entries: players.map(({ name }, index) => ({ name, turns: turns[index] ?? [] })),
  };
}

/**
 * Watches what the machine does beside all that this process has started: as a share of its cores, from now on
 * until it is asked. What a host keeps from a virtual machine counts as well.
 */
function watchOthers(): () => number {
  const read = (): number => readMachineCpuSeconds() - readTreeCpuSeconds(process.pid);
  const before = read();
  const beganMs = performance.now();
  return () => {
    const coreSeconds = (availableParallelism() * (performance.now() - beganMs)) / 1000;
    return Math.max(0, (read() - before) / coreSeconds);
  };
}
