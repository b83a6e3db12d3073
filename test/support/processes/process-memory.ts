import { readProcessFile, workersOf } from './worker-ids.ts';

/**
 * Watches the peak resident memory of a service and of its largest worker, in bytes, by Linux' high-water mark (`VmHWM`,
 * proc_pid_status(5)). Misses what a child allocates between the last sample and its exit.
 */
export function watchPeaks(pid: number) {
  const peaks = { main: 0, worker: 0 };
  const look = () => {
    peaks.main = Math.max(peaks.main, readStatus(pid, 'VmHWM'));
    const workers = workersOf(pid).map((worker) => readStatus(worker, 'VmHWM'));
    peaks.worker = Math.max(peaks.worker, ...workers);
    return peaks;
  };
  const timer = setInterval(look, 10);
  return { look, stop: () => clearInterval(timer) };
}

/** @throws Error if the system does not report it */
export function residentBytes(pid: number): number {
  const bytes = readStatus(pid, 'VmRSS');
  if (bytes === 0) throw new Error(`The system does not report the memory of process ${pid}.`);
  return bytes;
}

/** Watches the memory of a process. The returned function stops watching, and returns the maximum growth in bytes. */
export function watchGrowth(pid: number): () => number {
  const before = residentBytes(pid);
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, readStatus(pid, 'VmRSS'));
  }, 20);
  return () => {
    clearInterval(watch);
    return most - before;
  };
}

/** Reads a field of proc_pid_status(5) in bytes; 0 if the process has exited. */
function readStatus(pid: number, name: 'VmHWM' | 'VmRSS'): number {
  const status = readProcessFile(pid, 'status');
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0) * 1024;
}
