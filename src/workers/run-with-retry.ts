import type { RenderBounds } from '../pipeline/ports.ts';
import { LOST_WITH_FORK_SERVER } from './fork-server/client.ts';
import type { WorkerJob, WorkerResponse } from './protocol.ts';
import { lostWorker, overloaded, WorkerExited } from './worker-errors.ts';
import type { WorkerProcess } from './worker-process.ts';

interface Workers {
  readonly acquire: (client: AbortSignal) => Promise<Pick<WorkerProcess, 'run'>>;
  /** Returns how many workers of all slots have ended without being killed by the pool. */
  readonly countDeaths: () => number;
  readonly onRetry: (ending: string) => void;
}

/** Maximum workers that may die before a job has begun. */
const MAX_ATTEMPTS = 3;

/** Signals that a crash does not raise. */
const EXTERNAL_SIGNALS: readonly string[] = ['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP'];

/** Milliseconds within which simultaneous kills of several workers are noticed. */
const NOTICE_MS = 1_000;

/**
 * Runs a job, and retries it in the remaining time if its worker ended: an operator or the kernel, short of memory, may
 * have killed it. The job is at fault only if the second, new worker ends too, and no other worker with it.
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
  if (!EXTERNAL_SIGNALS.includes(again.ending)) throw lostWorker(again.ending);
  await new Promise((resolve) => setTimeout(resolve, NOTICE_MS));
  if (workers.countDeaths() - deaths <= 1) throw lostWorker(again.ending);
  throw overloaded('Other processes are killing the render workers.');
}

/** Runs a job in a live worker; returns its response, or the end of a worker that had begun it. */
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
