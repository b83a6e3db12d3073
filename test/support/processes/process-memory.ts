import { readProcessFile, workersOf } from './worker-ids.ts';

/**
 * Watches the most resident memory of a service and of its largest worker, in bytes, by the high-water mark that Linux
 * keeps for each (`VmHWM`, proc_pid_status(5)); what a child takes in its last moments is not seen.
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

/**
 * How much memory a process holds now, in bytes.
 *
 * @throws Error where it cannot be told
 */
export function residentBytes(pid: number): number {
  const bytes = readStatus(pid, 'VmRSS');
  if (bytes === 0) throw new Error(`The system does not tell the memory of process ${pid}.`);
  return bytes;
}

/**
 * Watches by how much more memory a process holds than now.
 *
 * @returns ends it, and tells the most in bytes
 * @throws Error where it cannot be told
 */
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

/** A field of proc_pid_status(5), in bytes; 0 where the process is gone. */
function readStatus(pid: number, name: 'VmHWM' | 'VmRSS'): number {
  const status = readProcessFile(pid, 'status');
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0) * 1024;
}
