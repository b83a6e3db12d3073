import type { Load } from '../harness/load.ts';
import type { LoadGenerator } from '../harness/load-generator.ts';
import {
  readProcess,
  readTree,
  readTreeCpuSeconds,
  watchMachine,
} from '../harness/process-numbers.ts';
import { quantile, sumOf } from '../harness/report.ts';
import type { Originals } from './originals.ts';

/** Values that all contests share. */
export interface Stage {
  readonly rounds: number;
  readonly turnMs: number;
  /** Turns that each contestant practises before the first round: V8 compiles what it runs often. */
  readonly practiceTurns: number;
  readonly generator: LoadGenerator;
  readonly originals: Originals;
  /** Whether pictures are compared too, which takes longer than making them. */
  readonly isLikenessWanted: boolean;
  /** Receives what could not take part. */
  readonly absences: Absence[];
}

/** Contestant that could not take part in a contest. */
export type Absence = readonly [contest: string, contestant: string, why: string];

/**
 * Required ratio of the first contestant's responses a second to those of another one. An aim is what an issue wants; a
 * gate is a floor below what was measured once, so that a regression is seen.
 */
export interface Requirement {
  readonly kind: 'aim' | 'gate';
  readonly to: string;
  readonly atLeast: number;
  /** Why the ratio is not higher. */
  readonly reason?: string;
}

export interface Contest {
  readonly name: string;
  readonly requirements: readonly Requirement[];
  readonly prepare: (stage: Stage) => Promise<Setup>;
}

/** Contestants of a contest, and how clients request from them. */
interface Setup {
  /** Description for the report. */
  readonly note: string;
  readonly clients: number;
  /** Whether clients request the same paths again and again; otherwise each path once. */
  readonly isRepeated: boolean;
  /** The first one is compared with the others. */
  readonly contestants: readonly Contestant[];
  /** Ends what the contestants share. */
  readonly close?: () => Promise<unknown>;
}

export interface Contestant {
  readonly name: string;
  readonly start: () => Promise<RunningServer>;
  /** Paths that clients request of it. */
  readonly paths: readonly string[];
  /** Rejects if its responses are not those that the contest is about. */
  readonly check: (origin: string) => Promise<unknown>;
  /** Measures more after each turn. */
  readonly inspect?: ((origin: string) => Promise<Turn>) | undefined;
}

export interface RunningServer {
  readonly origin: string;
  /** `undefined` if somebody else runs the server. */
  readonly pid: number | undefined;
  readonly stop: () => Promise<unknown>;
}

/** Measurements of one contestant in one turn, by the names of `columns` in `report.ts`. */
export type Turn = Readonly<Record<string, number>>;

/** Turns of one contestant. */
export interface Entry {
  readonly name: string;
  readonly turns: readonly Turn[];
}

export interface Outcome extends Pick<Contest, 'name' | 'requirements'>, Pick<Setup, 'note'> {
  readonly entries: readonly Entry[];
}

/**
 * Starts the contestants that can run here and pass their check, and notes the absence of the others. All practise for
 * the same time; then they take turns (A B C A B C), each with the whole machine.
 *
 * @throws Error if a response has another status than 200
 */
export async function hold({ name, requirements, prepare }: Contest, stage: Stage) {
  const { rounds, turnMs, practiceTurns, generator } = stage;
  const { note, clients, isRepeated, contestants, close } = await prepare(stage);
  const players: { contestant: Contestant; server: RunningServer; turns: Turn[] }[] = [];
  const createLoad = ({ contestant, server }: (typeof players)[number], round: number) => {
    const share = Math.floor(contestant.paths.length / (rounds + 1));
    const paths = contestant.paths.slice(round * share, (round + 1) * share);
    const { origin } = server;
    return isRepeated
      ? { origin, clients, durationMs: turnMs, isRepeated, paths: contestant.paths }
      : { origin, clients, durationMs: turnMs, paths };
  };
  try {
    for (const contestant of contestants) {
      let server: RunningServer | undefined;
      try {
        server = await contestant.start();
        await contestant.check(server.origin);
        players.push({ contestant, server, turns: [] });
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        stage.absences.push([name, contestant.name, why.replaceAll(/\s+/g, ' ')]);
        await server?.stop();
      }
    }
    for (const player of players) {
      const durationMs = turnMs * practiceTurns;
      await generator.run({ ...createLoad(player, 0), durationMs, isRepeated: true });
    }
    for (let round = 1; round <= rounds; round += 1) {
      for (const player of players) {
        const { contestant, server, turns } = player;
        const turn = await measure(generator, server, createLoad(player, round));
        turns.push({ ...turn, ...(await contestant.inspect?.(server.origin)) });
      }
    }
  } finally {
    for (const { server } of players) await server.stop();
    await close?.();
  }
  const entries = players.map(({ contestant, turns }) => ({ name: contestant.name, turns }));
  return { name, requirements, note, entries } satisfies Outcome;
}

/** Drives a load at a server, and measures both. */
async function measure(generator: LoadGenerator, server: RunningServer, load: Load): Promise<Turn> {
  const readServer = watchServer(server);
  const readMachine = watchMachine();
  const { responses, seconds } = await generator.run(load);
  const numbers = { ...readMachine(), ...readServer(responses.length) };
  const wrong = responses.find(({ status }) => status !== 200);
  if (wrong !== undefined) {
    throw new Error(`${load.origin} responds with ${wrong.status || 'nothing'}.`);
  }
  const timesMs = responses.map(({ totalMs }) => totalMs);
  return {
    ...numbers,
    perSecond: responses.length / seconds,
    p50Ms: quantile(timesMs, 0.5) ?? 0,
    p99Ms: quantile(timesMs, 0.99) ?? 0,
  };
}

/** Watches a server and its descendants until the returned function is called. */
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
