import { setTimeout as wait } from 'node:timers/promises';
import type { WorkerLane } from './lane.ts';
import type { RenderCommand, WorkerResponse } from './protocol.ts';
import { lostWorker, overloaded } from './worker-failures.ts';
import type { JobBounds, Outcome, WorkerProcess } from './worker-process.ts';
import { LOST_WITH_STARTER } from './worker-starter.ts';

/** Observer of the workers during a job. */
export interface JobWatch {
  /** Returns the number of workers that have ended so far without being told to. */
  readonly countDeaths: () => number;
  /** Called when the worker has ended in mid-job, and the job is retried. */
  readonly onLost: (ending: string) => void;
}

/** Most workers that may die under a job before the job has begun. */
const MAX_ATTEMPTS = 3;

/** Signals that a process's own faults do not raise. */
const KILLED_FROM_OUTSIDE: ReadonlySet<string> = new Set([
  'SIGKILL',
  'SIGTERM',
  'SIGINT',
  'SIGHUP',
]);

/** Time to notice the ends of workers that were killed at the same time, in milliseconds. */
const NOTICE_MS = 1_000;

/**
 * Runs a job on one of the workers of a lane.
 *
 * A worker that ends under a job may have been killed from outside: by the kernel, short of memory, or by an operator.
 * So the job is retried once, in a worker without earlier jobs if possible (`takeFresh`); only the end of that worker
 * shows that the job is to blame. If the system kills that worker too, and others with it, the blame remains unknown.
 *
 * @throws MediaError as `WorkerProcess.run`; `UNPROCESSABLE_MEDIA` if the job has ended its workers, `OVERLOADED` if no
 *   worker is available
 */
export async function runJob(
  command: RenderCommand,
  bounds: JobBounds,
  lane: WorkerLane,
  { countDeaths, onLost }: JobWatch,
): Promise<WorkerResponse> {
  const { signal } = bounds;
  const runOn = (take: () => Promise<WorkerProcess>) => runOnLiving(take, command, bounds, lane);
  const first = await runOn(() => lane.take(signal));
  if (first.kind !== 'lost') return first;
  onLost(first.ending);
  const deaths = countDeaths();
  const again = await runOn(() => lane.takeFresh(signal));
  if (again.kind !== 'lost') return again;
  if (again.ending === LOST_WITH_STARTER) throw overloaded(new Error(again.ending));
  if (!KILLED_FROM_OUTSIDE.has(again.ending)) throw lostWorker(again.ending);
  await wait(NOTICE_MS);
  if (countDeaths() - deaths <= 1) throw lostWorker(again.ending);
  throw overloaded(new Error('Render workers are killed from outside.'));
}

/** Retries on another worker if an idle one had died, which is not the job's fault. */
async function runOnLiving(
  take: () => Promise<WorkerProcess>,
  command: RenderCommand,
  bounds: JobBounds,
  lane: WorkerLane,
): Promise<Exclude<Outcome, { readonly kind: 'not begun' }>> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const worker = await take();
    try {
      const outcome = await worker.run(command, bounds);
      if (outcome.kind !== 'not begun') return outcome;
    } finally {
      lane.release(worker);
    }
  }
  throw overloaded(new Error('No render worker lived to begin the job.'));
}
