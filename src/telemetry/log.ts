import { type Logger, pino } from 'pino';
import { LogOutput } from './log-output.ts';
import { createRedaction } from './redaction.ts';

/** Options of the log. */
interface LogOptions {
  readonly level: string;
  /** Texts that must never stand in the log, wherever they come from. */
  readonly secrets: readonly (string | undefined)[];
  /** Where a person reads along; without, JSON lines go to the standard output. */
  readonly terminal: { write(text: string): unknown } | undefined;
}

/** The log of a process, and what its end has to know of it. */
export interface ProcessLog {
  readonly log: Logger;
  /** Returns the number of lines lost since the start, because their reader was too slow. */
  readonly countLost: () => number;
  /** Waits shortly for what is unwritten; whether the process can end then, see `LogOutput.settle`. */
  readonly settle: () => Promise<boolean>;
}

/** Creates the log. Each line goes through the redaction as the last thing before it is written. */
export async function createLog({ level, secrets, terminal }: LogOptions): Promise<ProcessLog> {
  const redact = createRedaction(secrets);
  if (terminal !== undefined) {
    // Only where a person reads along.
    const { prettyFactory } = await import('pino-pretty');
    const format = prettyFactory({
      colorize: true,
      singleLine: true,
      translateTime: 'SYS:HH:MM:ss',
      ignore: 'pid,hostname,err.type,err.message', // an error's stack begins with these two
    });
    const write = (line: string): unknown => terminal.write(format(maskControls(redact(line))));
    return { log: pino({ level }, { write }), countLost: () => 0, settle: async () => true };
  }
  const output = new LogOutput((lines) => {
    log.warn({ lines }, 'lines of the log were lost: their reader was too slow');
  });
  const log = pino({ level, hooks: { streamWrite: redact } }, output);
  return { log, countLost: () => output.linesLost, settle: () => output.settle() };
}

/**
 * A line of JSON without control characters but line breaks and tabs: a terminal takes orders from them, and lines
 * quote what strangers sent.
 */
function maskControls(line: string): string {
  return line
    .replaceAll(/\\(?:\\|[bfr]|u00(?:[01][\da-f]|7f))/gi, (sequence) =>
      sequence === '\\\\' ? sequence : '?',
    )
    .replaceAll(/[^\P{Cc}\n]/gu, '?');
}
