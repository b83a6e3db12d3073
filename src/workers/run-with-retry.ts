import type { RenderBounds } from '../pipeline/ports.ts';
import { LOST_WITH_FORK_SERVER } from './fork-server/client.ts';
import type { WorkerJob, WorkerResponse } from './protocol.ts';
import { lostWorker, overloaded, WorkerExited } from './worker-errors.ts';
import type { WorkerProcess } from './worker-process.ts';

/** Workers of a slot, one after another. */
interface Workers {
  readonly acquire: (client: AbortSignal) => Promise<Pick<WorkerProcess, 'run'>>;
  /** Counts the workers of all slots that have ended without being killed by the pool. */
  readonly countDeaths: () => number;
  readonly onRetry: (ending: string) => void;
}

/** Maximum of workers that may die before a job has begun. */
const MAX_ATTEMPTS = 3;

/** Signals that a process's own faults do not raise. */
const KILLED_FROM_OUTSIDE: readonly string[] = ['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP'];

/** Time to notice the ends of workers that were killed at the same time, in milliseconds. */
const NOTICE_MS = 1_000;

/**
 * Runs a job, and once more, in the rest of its time, if its worker ended: that one may have been killed from outside,
 * by the kernel, short of memory, or by an operator. Only the end of the second, which has done no other job, shows that
 * the job is at fault. If the system kills that worker too, and others with it, the cause remains unknown.
 */
export async function runWithRetry(
  job: WorkerJob,
  bounds: RenderBounds,
  workers: Workers,
): Promise<WorkerResponse> {
  const first = await run(job, bounds, workers);
  if (!(first instanceof WorkerExited)) return first;
  const { ending, leftMs = 0 } = first;
  workers.onRetry(ending);
  const deaths = workers.countDeaths();
  const again = await run(job, { ...bounds, timeoutMs: leftMs }, workers);
  if (!(again instanceof WorkerExited)) return again;
  if (again.ending === LOST_WITH_FORK_SERVER) throw overloaded(again.ending);
  if (!KILLED_FROM_OUTSIDE.includes(again.ending)) throw lostWorker(again.ending);
  await new Promise((resolve) => setTimeout(resolve, NOTICE_MS));
  if (workers.countDeaths() - deaths <= 1) throw lostWorker(again.ending);
  throw overloaded('Render workers are killed from outside.');
}

/**
 * Runs a job in a living worker; an idle one may have died, which is not the job's fault.
 *
 * @returns the end of a worker that had begun the job instead of its response
 */
async function run(
  job: WorkerJob,
  bounds: RenderBounds,
  { acquire }: Workers,
): Promise<WorkerResponse | WorkerExited> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const worker = await acquire(bounds.signal);
    try {
      return await worker.run(job, bounds);
    } catch (error) {
      if (!(error instanceof WorkerExited)) throw error;
      if (error.leftMs !== undefined) return error;
    }
  }
  throw overloaded('Every render worker died before the job started.');
}
