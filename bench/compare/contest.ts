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
  /** Maximum number of warm-up turns of a contestant; its warm-up also ends after `WARM_UP_RESPONSES` responses. */
  readonly warmUpTurns: number;
  readonly generator: LoadGenerator;
  readonly originals: Originals;
  /** Whether to compare pictures, too; this takes longer than rendering them. */
  readonly isLikenessWanted: boolean;
  /** Servers other than contestants; they run until all contests are over. */
  readonly helpers: Service[];
}

export interface Contest {
  readonly name: string;
  readonly note: string;
  readonly clients: number;
  /** Whether clients request the same paths again and again; otherwise each path once. */
  readonly isRepeated: boolean;
  /** Minimum ratio of the first contestant's responses a second to another contestant's, by its name. */
  readonly gates: Readonly<Record<string, number>>;
  /** Lists the contestants; the first one is compared with the others. */
  readonly enter: (stage: Stage) => Promise<readonly Contestant[]>;
}

export interface Contestant {
  readonly name: string;
  readonly start: () => Promise<Service>;
  readonly paths: readonly string[];
  /** Rejects if the server's responses are not comparable, for example of another size. */
  readonly check: (origin: string) => Promise<unknown>;
  /** Takes additional measurements after each turn. */
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
  /** Names of contestants that could not take part, with the reasons. */
  readonly absences: readonly (readonly [name: string, why: string])[];
}

/** By then V8 has compiled the hot code: the main process spends 3 ms of CPU on a miss at first, 1.5 ms afterwards. */
const WARM_UP_RESPONSES = 10_000;

interface Player {
  readonly contestant: Contestant;
  readonly server: Service;
  readonly turns: Turn[];
}

/**
 * Starts the contestants that can run on this machine and pass their check; records why others are absent. After a
 * warm-up of each, they take turns (B C A C A B), and each has the entire machine during its turn.
 *
 * @throws Error if the first one cannot take part, or if a response has another status than 200
 */
export async function runContest(contest: Contest, stage: Stage): Promise<Outcome> {
  const { name, note, gates, clients, isRepeated, enter } = contest;
  const { rounds, turnMs, warmUpTurns, generator } = stage;
  const absences: [string, string][] = [];
  const players: Player[] = [];
  const createLoad = ({ contestant, server }: Player, round: number): Load => {
    const partLength = Math.floor(contestant.paths.length / (rounds + 1));
    const part = contestant.paths.slice(round * partLength, (round + 1) * partLength);
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
        if (players.length === 0) throw error; // without the first contestant, there is no comparison
        const why = error instanceof Error ? error.message : String(error);
        absences.push([contestant.name, why.replaceAll(/\s+/g, ' ')]);
        await server?.stop();
      }
    }
    for (const player of players) {
      const load = { ...createLoad(player, 0), isRepeated: true };
      let practised = 0;
      for (let turn = 0; turn < warmUpTurns && practised < WARM_UP_RESPONSES; turn += 1) {
        practised += (await generator.run(load)).responses.length;
      }
    }
    for (let round = 1; round <= rounds; round += 1) {
      // Another contestant begins each round: looking up the round's paths first costs 8 % of its rate.
      const first = round % players.length;
      for (const player of [...players.slice(first), ...players.slice(0, first)]) {
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

/** Sends a load to a server, and measures the load, the server with its descendants, and the machine. */
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
