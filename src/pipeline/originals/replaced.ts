import { MediaError } from '../../contract/errors.ts';
import { StateMismatch } from '../ports.ts';

export function isReplaced(error: unknown): boolean {
  return error instanceof MediaError && error.cause instanceof StateMismatch;
}

/** Returns the error for an original that was replaced while it was read. */
export function replaced(cause?: unknown): MediaError {
  const message = 'The original was replaced while it was read.';
  return new MediaError('ORIGIN_ERROR', { cause: new StateMismatch(message, { cause }) });
}
