import { readProcessCpuMs } from './process-tree.ts';

/** How long a job may take; then its process is killed. */
export interface JobTimes {
  /** In milliseconds: of the process's CPU time where `starvedTimeoutMs` is longer, of the clock else. */
  readonly timeoutMs: number;
  /** By the clock, in milliseconds, for a process that other work on the machine keeps waiting; as of `RenderOptions`. */
  readonly starvedTimeoutMs?: number | undefined;
}

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
  const readCpuMs = (): number | undefined =>
    starvedTimeoutMs > timeoutMs ? readProcessCpuMs(processId) : undefined;
  const beganMs = performance.now();
  const atBeginMs = readCpuMs();
  const look = (): void => {
    const leftMs = starvedTimeoutMs - (performance.now() - beganMs);
    const nowMs = readCpuMs();
    const isKnown = atBeginMs !== undefined && nowMs !== undefined;
    const missedMs = isKnown ? timeoutMs - (nowMs - atBeginMs) : 0;
    if (missedMs <= 0 || leftMs <= 0) onOver();
    else timer = setTimeout(look, Math.ceil(Math.min(missedMs, leftMs)));
  };
  let timer = setTimeout(look, timeoutMs);
  return () => clearTimeout(timer);
}
