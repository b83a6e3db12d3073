import { workersOf } from '../../test/support/processes/worker-ids.ts';
import type { Load, LoadResponse } from '../harness/load.ts';
import { readCpuSeconds, readProcess } from '../harness/process-numbers.ts';
import { quantile, sumOf } from '../harness/report.ts';
import type { Stage } from './contest.ts';
import type { RunningServer } from './contestants.ts';
import type { MeasureName, Turn } from './measures.ts';

/** What a turn of simple requests measures, in the order of the report. */
export const RESPONSE_MEASURES = [
  'perSecond',
  'p50Ms',
  'p99Ms',
  'cpuSecondsPer1000',
  'peakBytes',
  'responses',
] as const satisfies readonly MeasureName[];

/** Watches a server and its children from now on, until it is read; nothing of one that is not ours. */
export function watchServer({ pid }: RunningServer): () => Turn {
  if (pid === undefined) return () => ({});
  const before = readCpuSeconds(pid);
  return () => {
    const { main, workers } = readCpuSeconds(pid);
    const processes = [pid, ...workersOf(pid)];
    return {
      mainCpuSeconds: main - before.main,
      cpuSeconds: main - before.main + workers - before.workers,
      peakBytes: sumOf(processes, (it) => readProcess(it)?.peakResidentBytes ?? 0),
    };
  };
}

/** A load for a server, without its origin. */
export type LoadOf = Load extends infer Kind
  ? Kind extends Load
    ? Omit<Kind, 'origin'>
    : never
  : never;

/**
 * Drives a load at a server, and measures both.
 *
 * @param status what all responses must have
 * @throws Error if one has another status
 */
export async function playLoad(
  { generator }: Stage,
  name: string,
  server: RunningServer,
  load: LoadOf,
  status = 200,
): Promise<{ readonly turn: Turn; readonly responses: readonly LoadResponse[] }> {
  const readUsage = watchServer(server);
  const { responses, seconds } = await generator.run({ ...load, origin: server.origin });
  const usage = readUsage();
  const wrong = responses.find((response) => response.status !== status);
  if (wrong !== undefined) throw new Error(`${name} responds with ${wrong.status || 'nothing'}.`);
  const timesMs = responses.map(({ totalMs }) => totalMs);
  const sentBytes = sumOf(responses, ({ bytes }) => bytes);
  const turn: Turn = {
    ...usage,
    seconds,
    perSecond: responses.length / seconds,
    mebibytesPerSecond: sentBytes / 2 ** 20 / seconds,
    p50Ms: quantile(timesMs, 0.5) ?? 0,
    p99Ms: quantile(timesMs, 0.99) ?? 0,
    responses: responses.length,
    ...(usage.cpuSeconds !== undefined && {
      cpuSecondsPer1000: (usage.cpuSeconds * 1000) / responses.length,
      cpuSecondsPerGibibyte: (usage.cpuSeconds * 2 ** 30) / sentBytes,
    }),
  };
  return { turn, responses };
}
