import type { Writable } from 'node:stream';
import type { Log } from '../pipeline/ports.ts';
import { writeLine } from './command.ts';

/** How many causes of causes are told. */
const MAX_CAUSES = 8;

/** A log for somebody at a terminal: errors alone, in a sentence each, with what caused them. */
export function createPlainLog(stderr: Writable): Log {
  return {
    info: ignore,
    warn: ignore,
    error: (details, message) => {
      const error = 'err' in details ? details.err : undefined;
      writeLine(stderr, `darkroom: ${message}${formatCauses(error)}`);
    },
  };
}

/** A log that nobody reads. */
export const silentLog: Log = { info: ignore, warn: ignore, error: ignore };

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

function ignore(): void {}
