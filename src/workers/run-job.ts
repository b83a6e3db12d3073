import { setTimeout as wait } from 'node:timers/promises';
import type { WorkerLane } from './lane.ts';
import type { RenderCommand, WorkerResponse } from './protocol.ts';
import { lostWorker, overloaded } from './worker-failures.ts';
import type { JobBounds, Outcome, WorkerProcess } from './worker-process.ts';
import { LOST_WITH_STARTER } from './worker-starter.ts';

/** What is to be known of the workers, and told of them, while a job runs. */
export interface JobWatch {
  /** How many workers have ended so far without being told to. */
  readonly countDeaths: () => number;
  /** The worker has ended in mid-job, and the job begins anew. */
  readonly onLost: (ending: string) => void;
}

/** How many workers may die under a job before it has begun. */
const MAX_ATTEMPTS = 3;

/** Signals that no fault of a process's own raises. */
const KILLED_FROM_OUTSIDE: ReadonlySet<string> = new Set([
  'SIGKILL',
  'SIGTERM',
  'SIGINT',
  'SIGHUP',
]);

/** Time until the ends of workers that were killed at the same time are noticed, in milliseconds. */
const NOTICE_MS = 1_000;

/**
 * Runs a job on one of the workers of a lane.
 *
 * A worker that ends under a job may have been killed from outside: by the kernel, which is short of memory, or an
 * operator. So the job begins anew, once, in a worker that has done nothing else; its end alone tells that the
 * job is to blame. Where the system kills that one, too, and others with it, that is still not known.
 *
 * @throws MediaError as `WorkerProcess.run`; `UNPROCESSABLE_MEDIA` if the job has ended its workers, `OVERLOADED` if
 *   there is none for it
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

/** A worker may have died while it was idle; that is no fault of the job, which takes another. */
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
