import type { Load } from '../harness/load.ts';
import type { LoadGenerator } from '../harness/load-generator.ts';
import type { Originals } from '../harness/originals.ts';
import {
  readProcess,
  readTree,
  readTreeCpuSeconds,
  watchMachine,
} from '../harness/process-numbers.ts';
import { quantile, sumOf } from '../harness/report.ts';
import type { Service } from '../harness/service.ts';

/** Values that all contests share. */
export interface Stage {
  readonly rounds: number;
  readonly turnMs: number;
  /** Most turns that each contestant practises before the first round, up to `PRACTISED` responses. */
  readonly practiceTurns: number;
  readonly generator: LoadGenerator;
  readonly originals: Originals;
  /** Whether pictures are compared too, which takes longer than making them. */
  readonly isLikenessWanted: boolean;
  /** Servers besides the contestants, which run until all contests are over. */
  readonly helpers: Service[];
}

export interface Contest {
  readonly name: string;
  /** Description for the report. */
  readonly note: string;
  readonly clients: number;
  /** Whether clients request the same paths again and again; otherwise each path once. */
  readonly isRepeated: boolean;
  /** Least ratios of the first contestant's responses a second to those of others, by their names. */
  readonly gates: Readonly<Record<string, number>>;
  /** Lists the contestants; the first one is compared with the others. */
  readonly enter: (stage: Stage) => Promise<readonly Contestant[]>;
}

export interface Contestant {
  readonly name: string;
  readonly start: () => Promise<Service>;
  /** Paths that clients request of it. */
  readonly paths: readonly string[];
  /** Rejects if its responses are not those that the contest is about. */
  readonly check: (origin: string) => Promise<unknown>;
  /** Measures more after each turn. */
  readonly inspect?: ((origin: string) => Promise<Turn>) | undefined;
}

/** Measurements of one contestant in one turn, by the names of `columns` in `report.ts`. */
export type Turn = Readonly<Record<string, number>>;

/** Turns of one contestant. */
export interface Entry {
  readonly name: string;
  readonly turns: readonly Turn[];
}

export interface Outcome extends Pick<Contest, 'name' | 'note' | 'gates'> {
  readonly entries: readonly Entry[];
  /** Contestants that could not take part, with the reason. */
  readonly absences: readonly (readonly [name: string, why: string])[];
}

/**
 * Responses after which V8 has compiled what runs often: a miss takes Darkroom's main process 3 ms of CPU at first, and
 * 1.5 ms after these.
 */
const PRACTISED = 10_000;

/**
 * Starts the contestants that can run here and pass their check, and notes the absence of the others. All practise, each
 * long enough; then they take turns (A B C A B C), each with the whole machine.
 *
 * @throws Error if the first one cannot take part, or if a response has another status than 200
 */
export async function hold(contest: Contest, stage: Stage): Promise<Outcome> {
  const { name, note, gates, clients, isRepeated, enter } = contest;
  const { rounds, turnMs, practiceTurns, generator } = stage;
  const absences: [string, string][] = [];
  const players: { contestant: Contestant; server: Service; turns: Turn[] }[] = [];
  const createLoad = ({ contestant, server }: (typeof players)[number], round: number): Load => {
    const share = Math.floor(contestant.paths.length / (rounds + 1));
    const part = contestant.paths.slice(round * share, (round + 1) * share);
    const paths = isRepeated ? contestant.paths : part;
    return { origin: server.origin, clients, durationMs: turnMs, isRepeated, paths };
  };
  try {
    for (const contestant of await enter(stage)) {
      let server: Service | undefined;
      try {
        server = await contestant.start();
        await contestant.check(server.origin);
        players.push({ contestant, server, turns: [] });
      } catch (error) {
        if (players.length === 0) throw error; // the one that the others are compared with
        const why = error instanceof Error ? error.message : String(error);
        absences.push([contestant.name, why.replaceAll(/\s+/g, ' ')]);
        await server?.stop();
      }
    }
    for (const player of players) {
      const load = { ...createLoad(player, 0), isRepeated: true };
      let practised = 0;
      for (let turn = 0; turn < practiceTurns && practised < PRACTISED; turn += 1) {
        practised += (await generator.run(load)).responses.length;
      }
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
  }
  const entries = players.map(({ contestant, turns }) => ({ name: contestant.name, turns }));
  return { name, note: `${note} ${clients} clients.`, gates, entries, absences };
}

/** Drives a load at a server, and measures the load, the server with its descendants, and the machine. */
async function measure(generator: LoadGenerator, server: Service, load: Load): Promise<Turn> {
  const readCpuSeconds = () => ({
    all: readTreeCpuSeconds(server.pid),
    main: readProcess(server.pid)?.cpuSeconds ?? 0,
  });
  const before = readCpuSeconds();
  const readMachine = watchMachine();
  const { responses, seconds } = await generator.run(load);
  const machine = readMachine();
  const after = readCpuSeconds();
  const wrong = responses.find(({ status }) => status !== 200);
  if (wrong !== undefined) {
    throw new Error(`${load.origin} responds with ${wrong.status || 'nothing'}.`);
  }
  const timesMs = responses.map(({ totalMs }) => totalMs);
  return {
    ...machine,
    cpuMsEach: ((after.all - before.all) * 1000) / responses.length,
    mainCpuMsEach: ((after.main - before.main) * 1000) / responses.length,
    peakBytes: sumOf(readTree(server.pid), ({ peakResidentBytes }) => peakResidentBytes),
    perSecond: responses.length / seconds,
    p50Ms: quantile(timesMs, 0.5) ?? 0,
    p99Ms: quantile(timesMs, 0.99) ?? 0,
  };
}
