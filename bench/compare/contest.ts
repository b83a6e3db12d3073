import type { LoadGenerator } from '../harness/load-generator.ts';
import { readChildren, readCpuSeconds, readProcess } from '../harness/process-numbers.ts';
import { quantile } from '../harness/quantile.ts';
import type { Service } from '../harness/service.ts';
import type { Contestant } from './contestants.ts';
import { askAgainAndAgain } from './hit-load.ts';
import type { Rendering } from './originals.ts';

/** One turn of one contestant. */
export interface Turn {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU of the server and its children per 1 000 answers, in seconds. */
  readonly cpuSecondsPer1000: number;
  /** The most memory that the server and its living children ever had, in bytes. */
  readonly peakBytes: number;
  readonly answers: number;
}

/** All turns of one contestant in one workload. */
export interface Entry {
  readonly name: string;
  readonly turns: readonly Turn[];
}

/** A workload, and who was how good at it. */
export interface Contest {
  readonly name: string;
  readonly entries: readonly Entry[];
}

interface RenderContest {
  readonly name: string;
  readonly folder: string;
  readonly contestants: readonly Contestant[];
  readonly renderings: readonly Rendering[];
  readonly clients: number;
  readonly rounds: number;
  readonly turnMs: number;
  readonly generator: LoadGenerator;
}

/**
 * Has contestants render, in turns (A B C A B C), each with all of the machine, and never the same thing
 * twice.
 *
 * @throws Error if an answer is not 200, or the renderings run out
 */
export async function contestRenders(contest: RenderContest): Promise<Contest> {
  const { name, folder, contestants, renderings, clients, rounds, turnMs, generator } = contest;
  const turns = contestants.map((): Turn[] => []);
  const servers = await startAll(contestants, folder);
  // The turn before the first one tells of the start, and is not counted.
  const share = Math.floor(renderings.length / (rounds + 1));
  try {
    for (let round = 0; round <= rounds; round += 1) {
      const own = renderings.slice(round * share, (round + 1) * share);
      for (const [index, contestant] of contestants.entries()) {
        const server = servers[index];
        if (server === undefined) continue;
        const paths = own.map((rendering) => contestant.targetOf(rendering));
        const before = readCpuSeconds(server.pid);
        const beganMs = performance.now();
        const { origin } = server;
        const load = { kind: 'closed', origin, clients, paths, durationMs: turnMs } as const;
        const { answers } = await generator.run(load);
        const seconds = (performance.now() - beganMs) / 1000;
        const wrong = answers.find(({ status }) => status !== 200);
        if (wrong !== undefined) throw new Error(`${contestant.name} answers ${wrong.status}.`);
        const latencies = answers.map(({ totalMs }) => totalMs);
        if (round > 0) turns[index]?.push(describeTurn(server.pid, before, latencies, seconds));
      }
    }
  } finally {
    for (const server of servers) await server.stop(5_000);
  }
  return { name, entries: toEntries(contestants, turns) };
}

/** Somebody who sends what is at hand. */
export interface HitContestant extends Contestant {
  /** A header of the requests, if there is one. */
  readonly header?: string;
  /** Of the answers; 200 where nothing else is said. */
  readonly status?: number;
}

interface HitContest {
  readonly name: string;
  readonly folder: string;
  readonly contestants: readonly HitContestant[];
  readonly rendering: Rendering;
  readonly clients: number;
  readonly rounds: number;
  readonly turnMs: number;
}

/** Has contestants answer the same question over and over, in turns. */
export async function contestHits(contest: HitContest): Promise<Contest> {
  const { name, folder, contestants, rendering, clients, rounds, turnMs } = contest;
  const turns = contestants.map((): Turn[] => []);
  const servers = await startAll(contestants, folder);
  try {
    for (let round = 0; round < rounds; round += 1) {
      for (const [index, contestant] of contestants.entries()) {
        const server = servers[index];
        if (server === undefined) continue;
        const header = contestant.header === undefined ? '' : `\r\n${contestant.header}`;
        const head = `GET ${contestant.targetOf(rendering)} HTTP/1.1${header}`;
        const load = { clients, status: contestant.status ?? 200 };
        await askAgainAndAgain(server.origin, head, { ...load, durationMs: 1_000 });
        const before = readCpuSeconds(server.pid);
        const result = await askAgainAndAgain(server.origin, head, { ...load, durationMs: turnMs });
        const latencies = [...result.latenciesMs];
        turns[index]?.push(describeTurn(server.pid, before, latencies, result.seconds));
      }
    }
  } finally {
    for (const server of servers) await server.stop(5_000);
  }
  return { name, entries: toEntries(contestants, turns) };
}

async function startAll(contestants: readonly Contestant[], folder: string): Promise<Service[]> {
  const servers: Service[] = [];
  try {
    for (const { start } of contestants) servers.push(await start(folder));
    return servers;
  } catch (error) {
    for (const server of servers) await server.stop(5_000);
    throw error;
  }
}

function describeTurn(
  pid: number,
  before: ReturnType<typeof readCpuSeconds>,
  latenciesMs: readonly number[],
  seconds: number,
): Turn {
  const after = readCpuSeconds(pid);
  const cpuSeconds = after.main + after.workers - before.main - before.workers;
  const answers = latenciesMs.length;
  const processes = [pid, ...readChildren(pid)];
  return {
    perSecond: answers / seconds,
    p50Ms: quantile(latenciesMs, 0.5) ?? 0,
    p99Ms: quantile(latenciesMs, 0.99) ?? 0,
    cpuSecondsPer1000: (cpuSeconds * 1000) / answers,
    peakBytes: processes.reduce((sum, it) => sum + (readProcess(it)?.peakResidentBytes ?? 0), 0),
    answers,
  };
}

function toEntries(contestants: readonly Contestant[], turns: readonly Turn[][]): Entry[] {
  return contestants.map(({ name }, index) => ({ name, turns: turns[index] ?? [] }));
}
