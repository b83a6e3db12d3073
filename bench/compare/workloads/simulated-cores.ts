import { startFlags } from '../../../test/support/processes/start-flags.ts';
import { startServer } from '../../harness/service.ts';
import { type Contest, holdContest, type Player, type Workload } from '../contest.ts';
import { PATIENT } from '../contestants.ts';
import { playLoad } from '../turns.ts';

/** Clients for each core: one is served, and one waits. */
const CLIENTS_PER_CORE = 2;

const MEASURES = ['perSecond', 'mainCpuMsEach', 'p50Ms', 'p99Ms', 'responses'] as const;

const NOTE =
  'Avatars, none of them kept, by workers that sleep for 12 ms instead of rendering, on as many cores as there are: what the main process feeds, and what it takes for that. Where twice as many cores have no longer twice the responses, two processes with half of the cores each do more.';

/** How many cores one process can feed: with 2 workers that sleep, with 4, and so on. */
export function simulatedCores(most: number): Workload {
  const name = 'simulated cores';
  const counts = [2, 4, 8, 16, 32, 64].filter((count) => count <= most);
  return {
    name,
    aims: [],
    hold: async (stage): Promise<Contest> => {
      const { folder, avatars } = await stage.originals();
      const paths = avatars.map(({ darkroomPath }) => darkroomPath);
      const players = counts.map(
        (cores): Player => ({
          name: `${cores} cores`,
          play: async () => {
            const server = await startServer({
              name: 'compare-sleeping',
              command: [
                process.execPath,
                ...startFlags,
                'bench/dist/bench/compare/servers/sleeping-darkroom.js',
              ],
              environment: {
                STORAGE_DIR: folder,
                WORKERS: String(cores),
                CACHE_MEMORY_BYTES: '0',
                CACHE_ORIGINALS_BYTES: '0',
                ...PATIENT,
              },
            });
            const clients = cores * CLIENTS_PER_CORE;
            const load = { kind: 'closed', clients, paths, isRepeated: true } as const;
            const play = () => playLoad(stage, name, server, { ...load, durationMs: stage.turnMs });
            await play(); // it is compiled by then
            return play().finally(() => server.stop());
          },
        }),
      );
      const plan = { name, note: NOTE, measures: MEASURES, rounds: stage.rounds };
      return holdContest({ ...plan, hasPractice: false }, players);
    },
  };
}
