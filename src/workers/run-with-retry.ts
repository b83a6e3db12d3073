import type { RenderBounds } from '../pipeline/ports.ts';
import { LOST_WITH_FORK_SERVER } from './fork-server/client.ts';
import type { WorkerJob, WorkerResponse } from './protocol.ts';
import { lostWorker, overloaded, WorkerExited } from './worker-errors.ts';
import type { WorkerProcess } from './worker-process.ts';

interface Workers {
  readonly acquire: (client: AbortSignal) => Promise<Pick<WorkerProcess, 'run'>>;
  /** Returns the number of workers of all slots that have ended without being killed by the pool. */
  readonly countDeaths: () => number;
  readonly onRetry: (ending: string) => void;
}

/** Maximum of workers that may die before a job has begun. */
const MAX_ATTEMPTS = 3;

/** Signals that a process's own crash does not raise. */
const KILLED_FROM_OUTSIDE: readonly string[] = ['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP'];

/** Time in which the ends of workers that were killed at the same time are noticed, in milliseconds. */
const NOTICE_MS = 1_000;

/**
 * Runs a job, and once more, in the rest of its time, if its worker ended: the kernel, short of memory, or an operator
 * may have killed it. Only the end of the second, fresh worker shows that the job is at fault, unless it is killed
 * together with others.
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

/** Runs a job in a living worker; returns its response, or the end of a worker that had begun it. */
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
