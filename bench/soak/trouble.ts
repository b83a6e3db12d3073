import { setTimeout as sleep } from 'node:timers/promises';
import { workersOf } from '../../test/support/processes/worker-ids.ts';
import { epochMs } from '../harness/load.ts';
import type { Random } from '../harness/random.ts';

/** Time in which something was made to fail; milliseconds since 1970. */
export interface Trouble {
  readonly name: string;
  /** Failures that the trouble excuses: of requests that need an original, of renders that are refused, or none. */
  readonly excuses: 'originals' | 'renders' | 'nothing';
  readonly startMs: number;
  /** With the time for which the service still feels it; infinite while it lasts. */
  endMs: number;
}

/** Fault that lasts for a while. */
export interface Fault extends Pick<Trouble, 'name' | 'excuses'> {
  /** Time for which the service still feels the fault after its end. */
  readonly lingerMs: number;
  readonly begin: () => unknown;
  readonly end: () => unknown;
}

/** Whether a trouble excuses such failures within a span of time. */
export function isExcused(
  troubles: readonly Trouble[],
  what: Trouble['excuses'],
  fromMs: number,
  toMs: number,
): boolean {
  return troubles.some(
    ({ excuses, startMs, endMs }) => excuses === what && fromMs < endMs && toMs > startMs,
  );
}

/** Lets a fault happen until `during` ends, and notes the trouble. */
export async function make(
  troubles: Trouble[],
  { begin, end, name, excuses, lingerMs }: Fault,
  during: () => Promise<unknown>,
): Promise<void> {
  const trouble = { name, excuses, startMs: epochMs(), endMs: Number.POSITIVE_INFINITY };
  troubles.push(trouble);
  await begin();
  await during();
  await end();
  trouble.endMs = epochMs() + lingerMs;
}

/** Waits; returns `false` if the load ends before. */
export async function pause(ms: number, over: AbortSignal): Promise<boolean> {
  await sleep(Math.max(0, ms), undefined, { signal: over }).catch(() => undefined);
  return !over.aborted;
}

const CYCLE_MS = 40_000;
const WAVE_MS = 12_000;

/** Lets one fault happen in each cycle until the load ends, each as often as the others. */
export async function makeWaves(
  troubles: Trouble[],
  faults: readonly Fault[],
  random: Random,
  over: AbortSignal,
): Promise<void> {
  let left: Fault[] = [];
  let restMs = CYCLE_MS / 2;
  while (await pause(restMs, over)) {
    if (left.length === 0) left = random.shuffle(faults);
    const fault = left.pop();
    if (fault === undefined) return;
    await make(troubles, fault, () => pause(WAVE_MS, over));
    restMs = CYCLE_MS - WAVE_MS;
  }
}

/** Least pause between two killed workers, within which the next one starts; the mean is twice as long. */
const KILL_PAUSE_MS = 5_000;

/**
 * Kills workers by SIGKILL, whether they render or not, until the load ends. No request may fail by it.
 *
 * @returns the number of killed workers
 */
export async function killWorkers(pid: number, random: Random, over: AbortSignal): Promise<number> {
  for (let killed = 0; ; ) {
    const earlier = new Set(workersOf(pid));
    const pauseMs = KILL_PAUSE_MS + random.exponential(KILL_PAUSE_MS);
    if (!(await pause(pauseMs, over))) return killed;
    // A worker that is just starting stays: a failed start is an error of its own.
    const workers = workersOf(pid).filter((worker) => earlier.has(worker));
    try {
      process.kill(random.pick(workers), 'SIGKILL');
      killed += 1;
    } catch {
      // No worker, or one that has just ended by itself.
    }
  }
}
