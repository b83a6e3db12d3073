import { setTimeout as sleep } from 'node:timers/promises';
import { workersOf } from '../../test/support/processes/worker-ids.ts';
import type { Random } from '../harness/random.ts';

/** From one to the next: at least this, within which the others are started, and as much again on average. */
const PAUSE_MS = 5_000;

/**
 * Kills workers as the kernel does when memory runs out: any of them, at work or not. No request may fail by it.
 *
 * @param pid of the service
 * @returns how many were killed, when it is over
 */
export async function killWorkers(pid: number, random: Random, over: AbortSignal): Promise<number> {
  let killed = 0;
  for (;;) {
    // A worker that is just starting is left alone: that it cannot start is an error.
    const there = new Set(workersOf(pid));
    const pauseMs = PAUSE_MS + random.exponential(PAUSE_MS);
    await sleep(pauseMs, undefined, { signal: over }).catch(() => undefined);
    if (over.aborted) return killed;
    const workers = workersOf(pid).filter((worker) => there.has(worker));
    if (workers.length === 0) continue;
    try {
      process.kill(random.pick(workers), 'SIGKILL');
      killed += 1;
    } catch {
      // It has just ended by itself.
    }
  }
}
