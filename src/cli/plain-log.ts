import type { Writable } from 'node:stream';
import { formatCauses } from '../contract/errors.ts';
import type { Log } from '../pipeline/ports.ts';
import { writeLine } from './command.ts';

/** Returns a log for a person at a terminal: only errors, a sentence each, with their causes. */
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

/** A log that discards everything. */
export const silentLog: Log = { info: ignore, warn: ignore, error: ignore };

function ignore(): void {}
