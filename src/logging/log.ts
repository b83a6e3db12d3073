import { type Logger, pino } from 'pino';
import type { RequestLine, RequestLog } from '../http/request-log.ts';
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

/** Time at the end of the process for what is unwritten, in milliseconds. */
const LAST_WORDS_MS = 500;

/**
 * Creates the log. It is written in the background: whoever reads it, if too slowly or not at all, does not
 * hold up the service. What is unwritten at the end of the process is written then, if that can be done soon.
 * Each line goes through the redaction as the last thing before it is written.
 *
 * Not covered: a pipe that nobody reads, and that blocks who writes. The thread that does has to end before the
 * process does.
 */
export function createLog({ level, secrets, terminal }: LogOptions): Logger {
  const options = { level, hooks: { streamWrite: createRedaction(secrets) } };
  if (terminal !== undefined) {
    return pino(options, { write: (line) => terminal.write(formatForTerminal(line)) });
  }
  return pino(options, openOutput());
}

/** pino's own would try for ever at the end, also where a disk is full, and take a failure for the end of all. */
function openOutput(): ReturnType<typeof pino.destination> {
  let isFailing = false;
  let flushingUntilMs: number | undefined;
  const output = pino.destination({
    dest: STANDARD_OUTPUT,
    sync: false,
    maxLength: MAX_UNWRITTEN_BYTES,
    retryEAGAIN: () => flushingUntilMs === undefined || performance.now() < flushingUntilMs,
  });
  // What could not be written is tried again with the next line.
  output.on('error', () => {
    isFailing = true;
  });
  output.on('write', () => {
    isFailing = false;
  });
  const flushSync = output.flushSync.bind(output);
  output.flushSync = () => {
    if (isFailing) return;
    flushingUntilMs = performance.now() + LAST_WORDS_MS;
    try {
      flushSync();
    } catch {
      // Nobody is left to be told.
    } finally {
      flushingUntilMs = undefined;
    }
  };
  return output;
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
