import { MediaError } from '../contract/errors.ts';

/** How many causes of causes are shown. */
const MAX_CAUSES = 8;

/** An error and what is behind it, each after a colon and without its full stop; empty where there is none. */
export function formatCauses(error: unknown): string {
  let text = '';
  let cause = error;
  for (let depth = 0; cause !== undefined && depth < MAX_CAUSES; depth += 1) {
    const message = cause instanceof Error ? cause.message : String(cause);
    text += `: ${message.replace(/\.$/, '')}`;
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  return text;
}

/** Why the origin could not be read, for an operator: the log and `darkroom check` use the same words. */
export function formatReadFailure(error: unknown): string {
  const isTimeout = error instanceof MediaError && error.code === 'ORIGIN_TIMEOUT';
  return isTimeout ? ': no answer within ORIGIN_FIRST_BYTE_TIMEOUT_MS' : formatCauses(error);
}
