import { readFileSync } from 'node:fs';
import { workersOf } from './worker-ids.ts';

/** Most memory that processes have held at once, in bytes. */
export interface MemoryPeaks {
  readonly main: number;
  /** The largest of its workers. */
  readonly worker: number;
}

/** How often the processes are looked at; what a child takes in its last moments is not seen. */
const INTERVAL_MS = 10;

/**
 * Watches the resident memory of a service and of its workers, by the high-water mark that Linux
 * keeps for each (`VmHWM`, proc_pid_status(5)).
 */
export class MemoryWatch {
  readonly #pid: number;
  readonly #timer: NodeJS.Timeout;
  #total = { main: 0, worker: 0 };

  constructor(pid: number) {
    this.#pid = pid;
    this.#timer = setInterval(() => this.#look(), INTERVAL_MS);
  }

  /** The peaks of the whole time. */
  get total(): MemoryPeaks {
    this.#look();
    return this.#total;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const main = readMark(this.#pid);
    const worker = Math.max(0, ...workersOf(this.#pid).map(readMark));
    const { main: mostMain, worker: mostWorker } = this.#total;
    this.#total = { main: Math.max(mostMain, main), worker: Math.max(mostWorker, worker) };
  }
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

function readMark(pid: number): number {
  return readStatus(pid, 'VmHWM');
}

/** A field of proc_pid_status(5), in bytes. */
function readStatus(pid: number, name: 'VmHWM' | 'VmRSS'): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0) * 1024;
  } catch {
    return 0; // gone in between
  }
}
