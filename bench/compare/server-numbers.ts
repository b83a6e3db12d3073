import { readChildren, readCpuSeconds, readProcess } from '../harness/process-numbers.ts';
import { quantile } from '../harness/quantile.ts';
import type { RunningServer } from './contestants.ts';
import type { Turn } from './measures.ts';

/** Seconds of CPU that a server has used so far; `undefined` of one that is not ours. */
export function readServerCpuSeconds({ pid }: RunningServer): number | undefined {
  if (pid === undefined) return undefined;
  const { main, workers } = readCpuSeconds(pid);
  return main + workers;
}

/** What a server has used since, and the most memory that it had. */
export function measureServer(
  server: RunningServer,
  cpuSecondsBefore: number | undefined,
): { readonly cpuSeconds: number; readonly peakBytes: number } | undefined {
  const { pid } = server;
  const cpuSeconds = readServerCpuSeconds(server);
  if (pid === undefined || cpuSeconds === undefined || cpuSecondsBefore === undefined) {
    return undefined;
  }
  const processes = [pid, ...readChildren(pid)];
  return {
    cpuSeconds: cpuSeconds - cpuSecondsBefore,
    peakBytes: processes.reduce((sum, it) => sum + (readProcess(it)?.peakResidentBytes ?? 0), 0),
  };
}

/** A turn of a server that was asked again and again. */
export function describeAnswers(
  server: RunningServer,
  cpuSecondsBefore: number | undefined,
  latenciesMs: ArrayLike<number>,
  seconds: number,
): Turn {
  const used = measureServer(server, cpuSecondsBefore);
  const answers = latenciesMs.length;
  return {
    perSecond: answers / seconds,
    p50Ms: quantile(latenciesMs, 0.5) ?? 0,
    p99Ms: quantile(latenciesMs, 0.99) ?? 0,
    answers,
    ...(used !== undefined && {
      cpuSecondsPer1000: (used.cpuSeconds * 1000) / answers,
      peakBytes: used.peakBytes,
    }),
  };
}
