import { readProcessCpuMs } from './process-tree.ts';

/** How long a job may take; then its process is killed. */
export interface JobTimes {
  /** In milliseconds: of the process's CPU time where `starvedTimeoutMs` is longer, of the clock else. */
  readonly timeoutMs: number;
  /** By the clock, in milliseconds, for a process that other work on the machine keeps waiting; as of `RenderOptions`. */
  readonly starvedTimeoutMs?: number | undefined;
}

/**
 * From when on a job's CPU time is counted, in milliseconds: most have ended by then, and to ask for it costs 0.06 ms of the
 * main process each time.
 */
const UNCOUNTED_MS = 50;

/**
 * Calls back when a job has had its time.
 *
 * @param processId of the worker; where its CPU time cannot be read, the clock alone counts
 * @returns stops that
 */
export function watchJobTime(
  processId: number | undefined,
  { timeoutMs, starvedTimeoutMs = timeoutMs }: JobTimes,
  onOver: () => void,
): () => void {
  const beganMs = performance.now();
  let countedMs: number | undefined;
  let timer: NodeJS.Timeout;
  const look = (): void => {
    const leftMs = starvedTimeoutMs - (performance.now() - beganMs);
    const nowMs = readProcessCpuMs(processId);
    const usedMs = UNCOUNTED_MS + (nowMs ?? Number.NaN) - (countedMs ?? Number.NaN);
    const missedMs = Number.isNaN(usedMs) ? 0 : timeoutMs - usedMs;
    if (missedMs <= 0 || leftMs <= 0) onOver();
    else timer = setTimeout(look, Math.ceil(Math.min(missedMs, leftMs)));
  };
  const count = (): void => {
    countedMs = readProcessCpuMs(processId);
    timer = setTimeout(look, timeoutMs - UNCOUNTED_MS);
  };
  const isByClock = starvedTimeoutMs <= timeoutMs;
  timer = isByClock ? setTimeout(onOver, timeoutMs) : setTimeout(count, UNCOUNTED_MS);
  return () => clearTimeout(timer);
}
