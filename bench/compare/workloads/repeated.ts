import { fetchOk } from '../../harness/service.ts';
import { type Contest, holdContest, type Player, type Stage } from '../contest.ts';
import type { Contestant } from '../contestants.ts';
import { lineUp } from '../line-up.ts';
import type { MeasureName } from '../measures.ts';
import { playLoad } from '../turns.ts';

/** Before each turn, so that what is asked for is there, and compiled what sends it, in milliseconds. */
const WARM_UP_MS = 500;

/** A server that sends one thing that is at hand. */
export interface Sender extends Omit<Contestant, 'targetOf'> {
  readonly target: string;
}

/** One thing that clients ask for again and again. */
export interface RepeatedRequest {
  readonly name: string;
  readonly note: string;
  readonly clients: number;
  readonly measures: readonly MeasureName[];
  readonly senders: readonly Sender[];
  /** What they send, or send files of. */
  readonly folder: string;
}

/** Has senders take turns. */
export async function holdRepeated(stage: Stage, request: RepeatedRequest): Promise<Contest> {
  const { name, note, clients, measures, senders, folder } = request;
  const starters = await lineUp(stage, name, senders, folder, ({ target }, origin) =>
    fetchOk(origin, target),
  );
  const players = starters.map(({ contestant, server }): Player => {
    const { target } = contestant;
    const load = { kind: 'closed', clients, paths: [target], isRepeated: true } as const;
    const play = (durationMs: number) =>
      playLoad(stage, contestant.name, server, { ...load, durationMs });
    return {
      name: contestant.name,
      play: async () => {
        await play(WARM_UP_MS);
        return play(stage.turnMs);
      },
      leave: () => server.stop(),
    };
  });
  return holdContest({ name, note, measures, rounds: stage.rounds, hasPractice: false }, players);
}
