import { treeOf } from '../../test/support/processes/worker-ids.ts';
import type { Load } from '../harness/load.ts';
import { readCpuSeconds, readProcess, watchIdle } from '../harness/process-numbers.ts';
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

/** What a turn of renders measures; the last two where pictures are compared. */
export const RENDER_MEASURES = [
  'perSecond',
  'cpuMsEach',
  'mainCpuMsEach',
  'idleShare',
  'p50Ms',
  'p99Ms',
  'peakBytes',
  'responses',
  'bytesEach',
  'ssimulacra2',
] as const satisfies readonly MeasureName[];

/** Watches a server and its children from now on, until it is read; nothing of one that is not ours. */
function watchServer({ pid }: RunningServer): () => Turn {
  if (pid === undefined) return () => ({});
  const before = readCpuSeconds(pid);
  return () => {
    const { main, workers } = readCpuSeconds(pid);
    return {
      mainCpuSeconds: main - before.main,
      cpuSeconds: main - before.main + workers - before.workers,
      peakBytes: sumOf(treeOf(pid), (it) => readProcess(it)?.peakResidentBytes ?? 0),
    };
  };
}

/** A load for a server, without its origin. */
type LoadOf = Load extends infer Kind ? (Kind extends Load ? Omit<Kind, 'origin'> : never) : never;

/**
 * Drives a load at a server, and measures both.
 *
 * @throws Error if a response has another status than 200
 */
export async function playLoad(
  { generator }: Stage,
  name: string,
  server: RunningServer,
  load: LoadOf,
): Promise<Turn> {
  const readUsage = watchServer(server);
  const readIdleShare = watchIdle();
  const { responses, seconds } = await generator.run({ ...load, origin: server.origin });
  const usage = readUsage();
  const wrong = responses.find((response) => response.status !== 200);
  if (wrong !== undefined) throw new Error(`${name} responds with ${wrong.status || 'nothing'}.`);
  const timesMs = responses.map(({ totalMs }) => totalMs);
  const sentBytes = sumOf(responses, ({ bytes }) => bytes);
  return {
    ...usage,
    idleShare: readIdleShare(),
    perSecond: responses.length / seconds,
    mebibytesPerSecond: sentBytes / 2 ** 20 / seconds,
    p50Ms: quantile(timesMs, 0.5) ?? 0,
    p99Ms: quantile(timesMs, 0.99) ?? 0,
    responses: responses.length,
    ...(usage.cpuSeconds !== undefined && {
      cpuSecondsPer1000: (usage.cpuSeconds * 1000) / responses.length,
      cpuMsEach: (usage.cpuSeconds * 1000) / responses.length,
      mainCpuMsEach: ((usage.mainCpuSeconds ?? 0) * 1000) / responses.length,
      cpuSecondsPerGibibyte: (usage.cpuSeconds * 2 ** 30) / sentBytes,
    }),
  };
}
