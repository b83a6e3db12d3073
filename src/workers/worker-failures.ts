import { MediaError } from '../contract/errors.ts';
import { WorkerLost } from '../pipeline/ports.ts';

/** The refusal of a job that no worker is there to begin. */
export function overloaded(cause: Error): MediaError {
  return new MediaError('OVERLOADED', { cause, bottleneck: 'workers', retryAfterSeconds: 1 });
}

/** The refusal of a job, or of a start, after the stop. */
export function stopped(): MediaError {
  return overloaded(new Error('The render workers are stopped.'));
}

/** The failure of a job that its worker has ended under, and that is to blame for it. */
export function lostWorker(ending: string): MediaError {
  const cause = new WorkerLost(`The worker ended with ${ending} in mid-job.`);
  return new MediaError('UNPROCESSABLE_MEDIA', { cause });
}
