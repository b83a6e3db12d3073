import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { workersOf } from '../../../test/support/processes/worker-ids.ts';
import type { Random } from '../../harness/random.ts';
import { pause } from '../clients.ts';

/** From one to the next: at least this, within which the others are started, and as much again on average. */
const PAUSE_MS = 5_000;

/** What a worker may still take once it is to be killed by the kernel: it comes to that in its next render. */
const LEFT_BYTES = 1024 * 1024;

/**
 * Kills workers: any of them, at work or not, by SIGKILL and by the kernel's own killer in turn. No request may fail by it.
 *
 * @param pid of the service
 * @returns how many were killed, when it is over; by the kernel `undefined` where no memory cgroup can be made
 */
export async function killWorkers(pid: number, random: Random, over: AbortSignal) {
  const group = openMemoryGroup();
  let [bySignal, attempts] = [0, 0];
  for (;;) {
    // A worker that is just starting is left alone: that it cannot start is an error.
    const there = new Set(workersOf(pid));
    const pauseMs = PAUSE_MS + random.exponential(PAUSE_MS);
    if (!(await pause(pauseMs, over))) break;
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

/** Where each version of cgroups has the controller, the bound, and the count of those that were killed. */
const VERSIONS = [
  { root: '/sys/fs/cgroup/memory', bound: 'memory.limit_in_bytes', count: 'memory.oom_control' },
  { root: '/sys/fs/cgroup', bound: 'memory.max', count: 'memory.events' },
];

/** A group of processes that have next to no memory left (cgroups(7)). */
function openMemoryGroup() {
  const { root, bound, count } = VERSIONS.find((version) => existsSync(version.root)) ?? {};
  const folder = `${root}/darkroom-soak-${process.pid}`;
  try {
    mkdirSync(folder);
    if (!existsSync(`${folder}/${bound}`)) {
      rmdirSync(folder);
      return undefined;
    }
    writeFileSync(`${folder}/${bound}`, String(LEFT_BYTES));
  } catch {
    return undefined;
  }
  return {
    squeeze: (pid: number) => writeFileSync(`${folder}/cgroup.procs`, String(pid)),
    /** Gives how many the kernel has killed. */
    close: () => {
      const text = readFileSync(`${folder}/${count}`, 'utf8');
      return Number(/^oom_kill (\d+)/m.exec(text)?.[1] ?? 0);
    },
  };
}
