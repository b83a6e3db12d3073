import type { RenderBounds } from '../pipeline/ports.ts';
import { readProcessCpuMs } from './process-tree.ts';

/**
 * Time after which a job's CPU time is measured, in milliseconds: most jobs have ended by then, and each measurement
 * costs 0.06 ms of the main process.
 */
const UNCOUNTED_MS = 50;

/**
 * Calls `onOver` when a job's time is over.
 *
 * @param processId of the worker; if its CPU time cannot be read, only wall time counts
 * @returns a function that stops the watch
 */
export function watchJobTime(
  processId: number | undefined,
  { timeoutMs, starvedTimeoutMs = timeoutMs }: Omit<RenderBounds, 'signal'>,
  onOver: () => void,
): () => void {
  const beganMs = performance.now();
  let countedMs: number | undefined;
  let timer: NodeJS.Timeout;
  const check = (): void => {
    const leftMs = starvedTimeoutMs - (performance.now() - beganMs);
    const nowMs = readProcessCpuMs(processId);
    const usedMs = UNCOUNTED_MS + (nowMs ?? Number.NaN) - (countedMs ?? Number.NaN);
    const missedMs = Number.isNaN(usedMs) ? 0 : timeoutMs - usedMs;
    if (missedMs <= 0 || leftMs <= 0) onOver();
    else timer = setTimeout(check, Math.ceil(Math.min(missedMs, leftMs)));
  };
  const count = (): void => {
    countedMs = readProcessCpuMs(processId);
    timer = setTimeout(check, timeoutMs - UNCOUNTED_MS);
  };
  const isByClock = starvedTimeoutMs <= timeoutMs;
  timer = isByClock ? setTimeout(onOver, timeoutMs) : setTimeout(count, UNCOUNTED_MS);
  return () => clearTimeout(timer);
}
