import { NODE_OF_SERVICE, startServer } from '../../harness/service.ts';
import { compete, type Entry, type Workload } from '../contest.ts';
import { COLD, type Starter } from '../contestants.ts';

/** Clients for each core: one is served, and one waits. */
const CLIENTS_PER_CORE = 2;

const NAME = 'simulated cores';

/** How many cores one process can feed: with 2 workers that sleep, with 4, and so on. */
export function simulatedCores(most: number): Workload {
  return {
    name: NAME,
    aims: [],
    decidedBy: 'perSecond',
    hold: async (stage) => {
      const { folder, avatars } = await stage.originals();
      const paths = avatars.map(({ darkroomPath }) => darkroomPath);
      const entries: Entry[] = [];
      // One after another, and not in turn: hundreds of workers would not fit into memory.
      for (const cores of [2, 4, 8, 16, 32, 64].filter((count) => count <= most)) {
        const load = { clients: cores * CLIENTS_PER_CORE, paths, isRepeated: true };
        const rules = { contest: NAME, folder, tryOut: async () => undefined, loadOf: () => load };
        entries.push(...(await compete(stage, [sleepingDarkroom(cores)], rules)));
      }
      return {
        note: 'Avatars, none of them kept, by workers that sleep for 12 ms instead of rendering, on as many cores as there are: what the main process feeds, and what it takes for that. Where twice as many cores have no longer twice the responses, two processes with half of the cores each do more.',
        entries,
      };
    },
  };
}

function sleepingDarkroom(cores: number): Starter {
  const script = 'bench/dist/bench/compare/servers/sleeping-darkroom.js';
  return {
    name: `${cores} cores`,
    start: (folder) =>
      startServer({
        name: 'compare-sleeping',
        command: () => [...NODE_OF_SERVICE, script],
        environment: { STORAGE_DIR: folder, WORKERS: String(cores), ...COLD },
      }),
  };
}
