import { type Contest, holdContest, type Player, type Stage, type Workload } from '../contest.ts';
import { cachingDarkroom, ipx, rawSharp } from '../contestants.ts';
import { createTrial, lineUp } from '../line-up.ts';
import { playLoad, watchServer } from '../turns.ts';

const CLIENTS = 32;
const KEYS_PER_ROUND = 4;

const NAME = 'stampede';
const NOTE = `${CLIENTS} clients ask for one photograph at 512 px at the same moment, which has never been asked for before; then for the next one, ${KEYS_PER_ROUND} in each turn. Darkroom has its caches, as it comes. Times are those of a whole crowd.`;

/** Many clients at once, and one image that is not there yet. */
export function stampedeWorkload(): Workload {
  return { name: NAME, aims: [], hold };
}

async function hold(stage: Stage): Promise<Contest> {
  const { rounds } = stage;
  const { folder, photos } = await stage.originals();
  const contestants = [cachingDarkroom, rawSharp, ipx];
  const starters = await lineUp(stage, NAME, contestants, folder, createTrial(photos));
  const players = starters.map(({ contestant, server }): Player => {
    const { name, targetOf } = contestant;
    return {
      name,
      play: async (round) => {
        const keys = photos.slice(round * KEYS_PER_ROUND, (round + 1) * KEYS_PER_ROUND);
        const readUsage = watchServer(server);
        let allServedMs = 0;
        for (const key of keys) {
          const paths = Array<string>(CLIENTS).fill(targetOf(key));
          const load = { kind: 'closed', clients: CLIENTS, paths } as const;
          const { responses } = await playLoad(stage, name, server, load);
          const ends = responses.map(({ startedMs, totalMs }) => startedMs + totalMs);
          const starts = responses.map(({ startedMs }) => startedMs);
          allServedMs += Math.max(...ends) - Math.min(...starts);
        }
        const { cpuSeconds = 0, ...usage } = readUsage();
        return {
          ...usage,
          allServedMs: allServedMs / keys.length,
          cpuSecondsPerKey: cpuSeconds / keys.length,
        };
      },
      leave: () => server.stop(),
    };
  });
  const measures = ['allServedMs', 'cpuSecondsPerKey', 'peakBytes'] as const;
  return holdContest({ name: NAME, note: NOTE, measures, rounds, hasPractice: true }, players);
}
