import { setTimeout as sleep } from 'node:timers/promises';
import { get, HttpClient } from '../../harness/exchange.ts';
import { readChildren, readProcess, readProportionalBytes } from '../../harness/process-numbers.ts';
import { type Contest, holdContest, type Player } from '../contest.ts';
import { type Contestant, ipx, keepingDarkroom, rawSharp } from '../contestants.ts';
import type { Turn } from '../measures.ts';
import type { Rendering } from '../originals.ts';
import type { Stage, Workload } from '../workload.ts';

/** After the first image, before memory is read, in milliseconds. */
const REST_MS = 2_000;

const NAME = 'start-up';
const NOTE =
  'From the start of the process to the last byte of its first image, an avatar, asked for as soon as it listens; then its memory at rest. Looked at every 5 ms. Darkroom starts one render process for each core, two at least, and confines it.';

/** Starting anew, and doing nothing. */
export function startUpWorkload(): Workload {
  return { name: NAME, aims: [], hold };
}

async function hold(stage: Stage): Promise<Contest> {
  const { folder, avatars } = await stage.originals();
  const [rendering] = avatars;
  if (rendering === undefined) throw new Error('There are no avatars.');
  const players = [keepingDarkroom, rawSharp, ipx].map(
    (contestant): Player => ({
      name: contestant.name,
      play: () => startOnce(contestant, folder, rendering),
      leave: async () => undefined,
    }),
  );
  const measures = ['firstImageMs', 'listeningMs', 'idleBytes', 'idleProportionalBytes'] as const;
  const { rounds } = stage;
  return holdContest({ name: NAME, note: NOTE, measures, rounds, hasPractice: true }, players);
}

async function startOnce(
  { name, start, targetOf }: Contestant,
  folder: string,
  rendering: Rendering,
): Promise<Turn> {
  const beganMs = performance.now();
  const server = await start(folder);
  const client = new HttpClient(server.origin);
  try {
    const listeningMs = performance.now() - beganMs;
    const { status } = await client.ask(get(targetOf(rendering)));
    const firstImageMs = performance.now() - beganMs;
    if (status !== 200) throw new Error(`${name} answers ${status}.`);
    await sleep(REST_MS);
    const processes = server.pid === undefined ? [] : [server.pid, ...readChildren(server.pid)];
    const parts = processes.map(readProportionalBytes);
    return {
      listeningMs,
      firstImageMs,
      idleBytes: processes.reduce((sum, pid) => sum + (readProcess(pid)?.residentBytes ?? 0), 0),
      ...(!parts.includes(undefined) && {
        idleProportionalBytes: parts.reduce<number>((sum, part) => sum + (part ?? 0), 0),
      }),
    };
  } finally {
    client.close();
    await server.stop(5_000);
  }
}
