import { findFreePorts } from '../../../test/support/free-ports.ts';
import { get, HttpClient } from '../../harness/exchange.ts';
import { startService } from '../../harness/service.ts';
import { type Contest, holdContest, type Player } from '../contest.ts';
import { type Contestant, darkroom, ipx, type RunningServer, rawSharp } from '../contestants.ts';
import { lineUp } from '../line-up.ts';
import type { Rendering } from '../originals.ts';
import { measureServer, readServerCpuSeconds } from '../server-numbers.ts';
import type { Stage, Workload } from '../workload.ts';
import { pickTrial } from './renders.ts';

const CLIENTS = 32;
const KEYS_PER_ROUND = 4;

const NAME = 'stampede';
const NOTE = `${CLIENTS} clients ask for one photograph at 512 px at the same moment, which nobody has asked for before; then for the next one, ${KEYS_PER_ROUND} in each turn. Darkroom has its caches, as anybody runs it. Times are those of a whole crowd.`;

/** Somebody who tells how often it has rendered. */
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
  const starters = await lineUp(stage, NAME, contestants, folder, pickTrial(photos));
  const players = starters.map(({ contestant, server }) => join(stage, contestant, server, photos));
  const measures = ['allAnsweredMs', 'rendersPerKey', 'cpuSecondsPerKey', 'peakBytes'] as const;
  return holdContest({ name: NAME, note: NOTE, measures, rounds, hasPractice: true }, players);
}

function join(
  { generator }: Stage,
  { name, targetOf, countRenders }: Counting,
  server: RunningServer,
  photos: readonly Rendering[],
): Player {
  return {
    name,
    play: async (round) => {
      const keys = photos.slice(round * KEYS_PER_ROUND, (round + 1) * KEYS_PER_ROUND);
      const rendersBefore = await countRenders(server);
      const cpuBefore = readServerCpuSeconds(server);
      let allAnsweredMs = 0;
      for (const key of keys) {
        const paths = Array<string>(CLIENTS).fill(targetOf(key));
        const { answers } = await generator.run({ kind: 'crowd', origin: server.origin, paths });
        const wrong = answers.find(({ status }) => status !== 200);
        if (wrong !== undefined) throw new Error(`${name} answers ${wrong.status}.`);
        const ends = answers.map(({ startedMs, totalMs }) => startedMs + totalMs);
        const starts = answers.map(({ startedMs }) => startedMs);
        allAnsweredMs += Math.max(...ends) - Math.min(...starts);
      }
      const used = measureServer(server, cpuBefore);
      return {
        allAnsweredMs: allAnsweredMs / keys.length,
        rendersPerKey: ((await countRenders(server)) - rendersBefore) / keys.length,
        ...(used !== undefined && {
          cpuSecondsPerKey: used.cpuSeconds / keys.length,
          peakBytes: used.peakBytes,
        }),
      };
    },
    leave: () => server.stop(5_000),
  };
}

/** The servers beside `contestants` count by themselves. */
async function countOwn({ origin }: RunningServer): Promise<number> {
  return Number(await read(origin, '/-/renders'));
}

/** Renders that had a slot, by the metrics of the admin listener. */
async function createCountingDarkroom(): Promise<Counting> {
  const [adminPort = 0] = await findFreePorts(1);
  const token = 'token-of-the-benchmark';
  return {
    ...darkroom,
    start: (folder) =>
      startService(
        { STORAGE_DIR: folder, ADMIN_PORT: String(adminPort), ADMIN_TOKEN: token },
        'bench-report/compare-darkroom-stampede.log',
      ),
    countRenders: async () => {
      const headers = { authorization: `Bearer ${token}` };
      const text = await read(`http://127.0.0.1:${adminPort}`, '/metrics', headers);
      const counts = [...text.matchAll(/^darkroom_queue_wait_seconds_count\{[^}]*\} (\d+)$/gm)];
      if (counts.length === 0) throw new Error('The metrics have no count of renders.');
      return counts.reduce((sum, [, count]) => sum + Number(count), 0);
    },
  };
}

async function read(
  origin: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<string> {
  const client = new HttpClient(origin);
  try {
    const { status, body } = await client.ask(get(path, headers));
    if (status !== 200) throw new Error(`${path} is answered with ${status}.`);
    return body.toString();
  } finally {
    client.close();
  }
}
