import type { Writable } from 'node:stream';
import { formatCauses } from '../contract/errors.ts';
import type { Log } from '../pipeline/ports.ts';
import { writeLine } from './command.ts';

/** A log for a person at a terminal: errors alone, in a sentence each, with what caused them. */
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

/** A log that is not read. */
export const silentLog: Log = { info: ignore, warn: ignore, error: ignore };

function ignore(): void {}
