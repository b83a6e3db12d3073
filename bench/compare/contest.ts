import type { ClosedLoad } from '../harness/load.ts';
import type { LoadGenerator } from '../harness/load-generator.ts';
import {
  readProcess,
  readTree,
  readTreeCpuSeconds,
  watchMachine,
} from '../harness/process-numbers.ts';
import { quantile, sumOf } from '../harness/report.ts';
import type { RunningServer, Starter } from './contestants.ts';
import type { MeasureName, Turn } from './measures.ts';
import type { Originals } from './originals.ts';

/** What workloads share. */
export interface Stage {
  readonly rounds: number;
  readonly turnMs: number;
  readonly generator: Pick<LoadGenerator, 'run'>;
  /** Drawn when they are wanted first. */
  readonly originals: () => Promise<Originals>;
  /** Whether pictures are compared, too, which takes longer than to make them. */
  readonly isLikenessWanted: boolean;
  /** Filled with those that did not take part. */
  readonly absences: Absence[];
}

/** Something that could not take part in a contest. */
export type Absence = readonly [contest: string, who: string, why: string];

/** What has to be shown: so many times as good as another contestant. */
export interface Aim {
  readonly of: string;
  readonly to: string;
  readonly atLeast: number;
  /** Why it is not more, where that is a question. */
  readonly reason?: string | undefined;
}

export interface Workload {
  readonly name: string;
  readonly aims: readonly Aim[];
  /** The measure that the aims are for. */
  readonly decidedBy: MeasureName;
  /** @returns what a reader has to know of it, and what came of it */
  readonly hold: (stage: Stage) => Promise<{ note: string; entries: readonly Entry[] }>;
}

/** All turns of one contestant in one workload. */
export interface Entry {
  readonly name: string;
  readonly turns: readonly Turn[];
}

/** How a contest is held. */
interface Rules<Contestant> {
  readonly contest: string;
  /** Of the originals. */
  readonly folder: string;
  /** Fails with what is wrong with a contestant's responses. */
  readonly tryOut: (contestant: Contestant, origin: string) => Promise<unknown>;
  /** @param round 0 is for practice, and not counted */
  readonly loadOf: (
    contestant: Contestant,
    round: number,
  ) => Pick<ClosedLoad, 'clients' | 'paths' | 'isRepeated'>;
  /** What is measured after each load. */
  readonly inspect?: (contestant: Contestant, origin: string) => Promise<Turn>;
}

/**
 * Starts the contestants that can run here and pass the trial, and notes the absence of the others; has them take turns
 * (A B C A B C), each with all of the machine; ends them, however the contest ends.
 *
 * @throws Error if a response has another status than 200
 */
export async function compete<Contestant extends Starter>(
  { rounds, turnMs: durationMs, generator, absences }: Stage,
  contestants: readonly Contestant[],
  { contest, folder, tryOut, loadOf, inspect }: Rules<Contestant>,
): Promise<Entry[]> {
  const players: { contestant: Contestant; server: RunningServer; turns: Turn[] }[] = [];
  try {
    for (const contestant of contestants) {
      let server: RunningServer | undefined;
      try {
        server = await contestant.start(folder);
        await tryOut(contestant, server.origin);
        players.push({ contestant, server, turns: [] });
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        absences.push([contest, contestant.name, why.replaceAll(/\s+/g, ' ')]);
        await server?.stop();
      }
    }
    for (let round = 0; round <= rounds; round += 1) {
      for (const { contestant, server, turns } of players) {
        const { origin } = server;
        const load = { kind: 'closed', origin, durationMs, ...loadOf(contestant, round) } as const;
        if (round === 0) {
          const practiceMs = durationMs * (contestant.practiceTurns ?? 1);
          await generator.run({ ...load, durationMs: practiceMs, isRepeated: true });
          continue;
        }
        const turn = await measure(generator, contestant.name, server, load);
        turns.push({ ...turn, ...(await inspect?.(contestant, origin)) });
      }
    }
  } finally {
    for (const { server } of players) await server.stop();
  }
  return players.map(({ contestant: { name }, turns }) => ({ name, turns }));
}

/** Drives a load at a server, and measures both. */
async function measure(
  generator: Stage['generator'],
  name: string,
  server: RunningServer,
  load: ClosedLoad,
): Promise<Turn> {
  const readServer = watchServer(server);
  const readMachine = watchMachine();
  const { responses, seconds } = await generator.run(load);
  const numbers = { ...readMachine(), ...readServer(responses.length) };
  const wrong = responses.find(({ status }) => status !== 200);
  if (wrong !== undefined) throw new Error(`${name} responds with ${wrong.status || 'nothing'}.`);
  const timesMs = responses.map(({ totalMs }) => totalMs);
  return {
    ...numbers,
    perSecond: responses.length / seconds,
    p50Ms: quantile(timesMs, 0.5) ?? 0,
    p99Ms: quantile(timesMs, 0.99) ?? 0,
    responses: responses.length,
  };
}

/** Watches a server and its children from now on, until it is read; nothing of one that is not ours. */
function watchServer({ pid }: RunningServer): (responses: number) => Turn {
  if (pid === undefined) return () => ({});
  const readMain = (): number => readProcess(pid)?.cpuSeconds ?? 0;
  const before = { all: readTreeCpuSeconds(pid), main: readMain() };
  return (responses) => ({
    cpuMsEach: ((readTreeCpuSeconds(pid) - before.all) * 1000) / responses,
    mainCpuMsEach: ((readMain() - before.main) * 1000) / responses,
    peakBytes: sumOf(readTree(pid), ({ peakResidentBytes }) => peakResidentBytes),
  });
}
