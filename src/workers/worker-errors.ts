import { MediaError } from '../contract/errors.ts';
import { WorkerLost } from '../pipeline/ports.ts';
import { ProtocolError } from './packets.ts';
import type { WorkerResponse } from './protocol.ts';

/** `stopped`: all clients of the job have left. */
export type KillReason =
  | 'deadline'
  | 'stopped'
  | 'shutdown'
  | 'slow start'
  | 'sandbox'
  | 'recycled'
  | 'idle'
  | `protocol: ${string}`;

export const OUT_OF_MEMORY = 'no memory left';

/** A worker ended during a job; it may be retried in another one. */
export class WorkerExited extends Error {
  override readonly name = 'WorkerExited';
  readonly ending: string;
  /** Milliseconds until the job's deadline; `undefined` if the worker had not begun the job. */
  readonly leftMs: number | undefined;

  constructor(ending: string, leftMs?: number) {
    super(`ended with ${ending}`);
    this.ending = ending;
    this.leftMs = leftMs;
  }
}

export function lostWorker(ending: string): MediaError {
  const cause = new WorkerLost(`The worker ended with ${ending} in mid-job.`);
  const code = ending === OUT_OF_MEMORY ? 'MEDIA_TOO_LARGE' : 'UNPROCESSABLE_MEDIA';
  return new MediaError(code, { cause });
}

export function overloaded(reason: string): MediaError {
  const cause = new Error(reason);
  return new MediaError('OVERLOADED', { cause, bottleneck: 'workers', retryAfterSeconds: 1 });
}

/** A worker that a signal or a debugger has stopped is not at fault for a missed deadline. */
export function deadlineError(isStopped: boolean): MediaError {
  if (isStopped) return overloaded('The worker is stopped.');
  const cause = new WorkerLost('The worker was killed at its deadline.');
  return new MediaError('TRANSFORM_TIMEOUT', { cause });
}

export function toJobError(error: unknown, leftMs: number | undefined): unknown {
  if (error instanceof WorkerExited) return new WorkerExited(error.ending, leftMs);
  if (!(error instanceof ProtocolError)) return error;
  const ending = `protocol: ${error.message}`;
  return leftMs === undefined ? new WorkerExited(ending) : lostWorker(ending);
}

/** An unexpected response is a bug, hence a 500. */
export function failureOf(response: WorkerResponse): Error {
  if (response.kind !== 'failed') return new Error(`Unexpected response "${response.kind}".`);
  const { code, detail } = response;
  const cause = new Error(detail);
  if (code === 'OVERLOADED') return overloaded(detail);
  return code === 'INTERNAL_ERROR' ? cause : new MediaError(code, { cause });
}

export function stopped(): MediaError {
  return overloaded('The render workers are stopped.');
}
