import { MediaError } from '../contract/errors.ts';
import { WorkerLost } from '../pipeline/ports.ts';

/** Returns the error of a job without an available worker. */
export function overloaded(cause: Error): MediaError {
  return new MediaError('OVERLOADED', { cause, bottleneck: 'workers', retryAfterSeconds: 1 });
}

/** Returns the error of a job, or of a start, after the stop. */
export function stopped(): MediaError {
  return overloaded(new Error('The render workers are stopped.'));
}

/** Returns the error of a job that has ended its worker. */
export function lostWorker(ending: string): MediaError {
  const cause = new WorkerLost(`The worker ended with ${ending} in mid-job.`);
  return new MediaError('UNPROCESSABLE_MEDIA', { cause });
}
