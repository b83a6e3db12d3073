import { type Logger, pino } from 'pino';
import type { RequestLine, RequestLog } from './http/request-log.ts';
import { formatForTerminal } from './log-lines.ts';
import { createRedaction } from './redaction.ts';

/** How the log is made. */
export interface LogOptions {
  readonly level: string;
  /** What must never stand in it, whoever writes it there. */
  readonly secrets: readonly (string | undefined)[];
  /** Where a person reads along; without, JSON lines go to the standard output. */
  readonly terminal: { write(text: string): unknown } | undefined;
}

/** What is not yet written when the reader is slow, in bytes; what comes on top is dropped. */
const MAX_UNWRITTEN_BYTES = 8 * 1024 * 1024;

const STANDARD_OUTPUT = 1;

/**
 * Creates the log. It is written in the background: whoever reads it, if too slowly or not at all, does not
 * hold up the service. What is unwritten at the end of the process is written then. Each line goes through the
 * redaction as the last thing before it is written.
 */
export function createLog({ level, secrets, terminal }: LogOptions): Logger {
  const options = { level, hooks: { streamWrite: createRedaction(secrets) } };
  if (terminal !== undefined) {
    return pino(options, { write: (line) => terminal.write(formatForTerminal(line)) });
  }
  const output = { dest: STANDARD_OUTPUT, sync: false, maxLength: MAX_UNWRITTEN_BYTES };
  return pino(options, pino.destination(output));
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
