import { type Logger, pino } from 'pino';
import { formatForTerminal } from './log-lines.ts';
import { LogOutput } from './log-output.ts';
import { createRedaction } from './redaction.ts';
import type { RequestLine, RequestLog } from './request-log.ts';

/** How the log is made. */
export interface LogOptions {
  readonly level: string;
  /** What must never stand in it, whoever writes it there. */
  readonly secrets: readonly (string | undefined)[];
  /** Where a person reads along; without, JSON lines go to the standard output. */
  readonly terminal: { write(text: string): unknown } | undefined;
}

/** The log of a process, and what its end has to know of it. */
export interface ProcessLog {
  readonly log: Logger;
  /** How many lines were lost since the start, because whoever reads them was too slow. */
  readonly countLost: () => number;
  /** Waits shortly for what is unwritten; whether the process can end then, see `LogOutput.settle`. */
  readonly settle: () => Promise<boolean>;
}

/** Creates the log. Each line goes through the redaction as the last thing before it is written. */
export function createLog({ level, secrets, terminal }: LogOptions): ProcessLog {
  const options = { level, hooks: { streamWrite: createRedaction(secrets) } };
  if (terminal !== undefined) {
    const log = pino(options, { write: (line) => terminal.write(formatForTerminal(line)) });
    return { log, countLost: () => 0, settle: async () => true };
  }
  const output = new LogOutput((lines) => {
    log.warn({ lines }, 'lines of the log were lost: whoever reads it was too slow');
  });
  const log = pino(options, output);
  return { log, countLost: () => output.linesLost, settle: () => output.settle() };
}

/**
 * Tells of requests: hits in memory at `debug`, everything else at `info`. There may be tens of thousands of
 * hits a second; a line for each would cost more than the answers, and the counters tell as much.
 */
export function createRequestLog(log: Logger): RequestLog {
  const scope = log.isLevelEnabled('debug')
    ? 'all'
    : log.isLevelEnabled('info')
      ? 'without hits'
      : 'none';
  return {
    scope,
    tell: (line: RequestLine, isPlainHit: boolean) => {
      if (isPlainHit) log.debug(line, 'request');
      else log.info(line, 'request');
    },
  };
}
