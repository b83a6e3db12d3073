import { setTimeout as sleep } from 'node:timers/promises';
import { readChildren, readProcess, readProportionalBytes } from '../../harness/process-numbers.ts';
import { sumOf } from '../../harness/report.ts';
import { fetchOk } from '../../harness/service.ts';
import { type Contest, holdContest, type Player, type Stage, type Workload } from '../contest.ts';
import { type Contestant, cachingDarkroom, ipx, rawSharp } from '../contestants.ts';
import type { Turn } from '../measures.ts';
import type { Rendering } from '../originals.ts';

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
  const players = [cachingDarkroom, rawSharp, ipx].map(
    (contestant): Player => ({
      name: contestant.name,
      play: () => startOnce(contestant, folder, rendering),
    }),
  );
  const measures = ['firstImageMs', 'listeningMs', 'idleBytes', 'idleProportionalBytes'] as const;
  const { rounds } = stage;
  return holdContest({ name: NAME, note: NOTE, measures, rounds, hasPractice: true }, players);
}

async function startOnce(
  { start, targetOf }: Contestant,
  folder: string,
  rendering: Rendering,
): Promise<Turn> {
  const beganMs = performance.now();
  const server = await start(folder);
  try {
    const listeningMs = performance.now() - beganMs;
    await fetchOk(server.origin, targetOf(rendering));
    const firstImageMs = performance.now() - beganMs;
    await sleep(REST_MS);
    const processes = server.pid === undefined ? [] : [server.pid, ...readChildren(server.pid)];
    const parts = processes.flatMap((pid) => readProportionalBytes(pid) ?? []);
    return {
      listeningMs,
      firstImageMs,
      idleBytes: sumOf(processes, (pid) => readProcess(pid)?.residentBytes ?? 0),
      ...(parts.length === processes.length && {
        idleProportionalBytes: sumOf(parts, (part) => part),
      }),
    };
  } finally {
    await server.stop();
  }
}
