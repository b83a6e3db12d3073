import { findFreePorts } from '../../../test/support/free-ports.ts';
import { sumOf } from '../../harness/report.ts';
import { fetchOk, startService } from '../../harness/service.ts';
import { type Contest, holdContest, type Player, type Stage, type Workload } from '../contest.ts';
import { type Contestant, darkroom, ipx, type RunningServer, rawSharp } from '../contestants.ts';
import { createTrial, lineUp } from '../line-up.ts';
import { playLoad, watchServer } from '../turns.ts';

const CLIENTS = 32;
const KEYS_PER_ROUND = 4;

const NAME = 'stampede';
const NOTE = `${CLIENTS} clients ask for one photograph at 512 px at the same moment, which has never been asked for before; then for the next one, ${KEYS_PER_ROUND} in each turn. Darkroom has its caches, as it comes. Times are those of a whole crowd.`;

/** A server that tells how often it has rendered. */
interface Counting extends Contestant {
  readonly countRenders: (server: RunningServer) => Promise<number>;
}

/** Many clients at once, and one image that is not there yet. */
export function stampedeWorkload(): Workload {
  return { name: NAME, aims: [], hold };
}

async function hold(stage: Stage): Promise<Contest> {
  const { rounds } = stage;
  const { folder, photos } = await stage.originals();
  const contestants = [
    await createCountingDarkroom(),
    { ...rawSharp, countRenders: countOwn },
    { ...ipx, countRenders: countOwn },
  ];
  const starters = await lineUp(stage, NAME, contestants, folder, createTrial(photos));
  const players = starters.map(({ contestant, server }): Player => {
    const { name, targetOf, countRenders } = contestant;
    return {
      name,
      play: async (round) => {
        const keys = photos.slice(round * KEYS_PER_ROUND, (round + 1) * KEYS_PER_ROUND);
        const rendersBefore = await countRenders(server);
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
          rendersPerKey: ((await countRenders(server)) - rendersBefore) / keys.length,
          cpuSecondsPerKey: cpuSeconds / keys.length,
        };
      },
      leave: () => server.stop(),
    };
  });
  const measures = ['allServedMs', 'rendersPerKey', 'cpuSecondsPerKey', 'peakBytes'] as const;
  return holdContest({ name: NAME, note: NOTE, measures, rounds, hasPractice: true }, players);
}

/** The servers beside `contestants` count by themselves. */
async function countOwn({ origin }: RunningServer): Promise<number> {
  return Number((await fetchOk(origin, '/-/renders')).body);
}

/** Renders that had a slot, by the metrics of the admin listener. */
async function createCountingDarkroom(): Promise<Counting> {
  const [adminPort = 0] = await findFreePorts(1);
  const token = 'token-of-the-benchmark';
  return {
    ...darkroom,
    start: (folder) =>
      startService('compare-darkroom-stampede', {
        STORAGE_DIR: folder,
        ADMIN_PORT: String(adminPort),
        ADMIN_TOKEN: token,
      }),
    countRenders: async () => {
      const headers = { authorization: `Bearer ${token}` };
      const { body } = await fetchOk(`http://127.0.0.1:${adminPort}`, '/metrics', headers);
      const form = /^darkroom_queue_wait_seconds_count\{[^}]*\} (\d+)$/gm;
      const counts = [...body.toString().matchAll(form)];
      if (counts.length === 0) throw new Error('The metrics have no count of renders.');
      return sumOf(counts, ([, count]) => Number(count));
    },
  };
}
