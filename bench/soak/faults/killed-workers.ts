import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { workersOf } from '../../../test/support/processes/worker-ids.ts';
import type { Random } from '../../harness/random.ts';

/** From one to the next: at least this, within which the others are started, and as much again on average. */
const PAUSE_MS = 5_000;

/** What a worker may still take once it is to be killed by the kernel: it comes to that in its next render. */
const LEFT_BYTES = 1024 * 1024;

/** Workers that were killed. */
export interface KilledWorkers {
  readonly bySignal: number;
  /** By the kernel, out of memory; `undefined` where no memory cgroup can be made. */
  readonly byKernel: number | undefined;
}

/**
 * Kills workers: any of them, at work or not, by SIGKILL and by the kernel's own killer in turn. No request may fail by it.
 *
 * @param pid of the service
 * @returns how many were killed, when it is over
 */
export async function killWorkers(
  pid: number,
  random: Random,
  over: AbortSignal,
): Promise<KilledWorkers> {
  const group = openMemoryGroup();
  let [bySignal, attempts] = [0, 0];
  for (;;) {
    // A worker that is just starting is left alone: that it cannot start is an error.
    const there = new Set(workersOf(pid));
    const pauseMs = PAUSE_MS + random.exponential(PAUSE_MS);
    await sleep(pauseMs, undefined, { signal: over }).catch(() => undefined);
    if (over.aborted) break;
    const workers = workersOf(pid).filter((worker) => there.has(worker));
    if (workers.length === 0) continue;
    try {
      attempts += 1;
      const worker = random.pick(workers);
      if (attempts % 2 === 0 && group !== undefined) group.squeeze(worker);
      else {
        process.kill(worker, 'SIGKILL');
        bySignal += 1;
      }
    } catch {
      // It has just ended by itself.
    }
  }
  return { bySignal, byKernel: group?.close() };
}

/** Processes that have next to no memory left (cgroups(7)). */
interface MemoryGroup {
  readonly squeeze: (pid: number) => void;
  /** @returns how many the kernel has killed */
  readonly close: () => number;
}

/** Where each version of cgroups has the controller, the bound, and the count of those that were killed. */
const VERSIONS = [
  { root: '/sys/fs/cgroup/memory', bound: 'memory.limit_in_bytes', count: 'memory.oom_control' },
  { root: '/sys/fs/cgroup', bound: 'memory.max', count: 'memory.events' },
];

function openMemoryGroup(): MemoryGroup | undefined {
  for (const { root, bound, count } of VERSIONS) {
    const folder = `${root}/darkroom-soak-${process.pid}`;
    try {
      mkdirSync(folder);
      if (!existsSync(`${folder}/${bound}`)) {
        rmdirSync(folder);
        continue;
      }
      writeFileSync(`${folder}/${bound}`, String(LEFT_BYTES));
    } catch {
      continue;
    }
    return {
      squeeze: (pid) => writeFileSync(`${folder}/cgroup.procs`, String(pid)),
      close: () => {
        const text = readFileSync(`${folder}/${count}`, 'utf8');
        return Number(/^oom_kill (\d+)/m.exec(text)?.[1] ?? 0);
      },
    };
  }
  return undefined;
}
