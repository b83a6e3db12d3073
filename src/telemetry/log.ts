import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Logger, pino } from 'pino';
import type { ErrorCode } from '../contract/errors.ts';
import type { SignatureVerdict } from '../contract/signing/attachment-signature.ts';
import type { ResponseClass } from '../pipeline/meter.ts';
import type { CacheUse, Stage } from '../pipeline/request-trace.ts';
import { createRedaction } from './redaction.ts';

const STANDARD_OUTPUT = 1;

/** Bytes that may wait for a slow reader; lines beyond them are dropped and counted. */
const MAX_UNWRITTEN_BYTES = 8 * 1024 * 1024;

/** Lines are written together up to this size, or after this time in milliseconds: each write wakes a thread. */
const GATHERED_BYTES = 8 * 1024;
const GATHERING_MS = 100;

const FLUSH_TIMEOUT_MS = 500;

interface LogOptions {
  readonly level: string;
  /** Texts that must never stand in the log, wherever they come from. */
  readonly secrets: readonly (string | undefined)[];
  /** Where a person reads along; without, JSON lines go to the standard output. */
  readonly terminal: { write(text: string): unknown } | undefined;
}

/** The log of a process. */
export interface ProcessLog {
  readonly log: Logger;
  /** Returns the number of lines dropped since the start, because their reader was too slow. */
  readonly countLost: () => number;
  /** Writes the last lines, with a deadline; returns whether the process can exit: Node waits for a write that hangs. */
  readonly flush: () => Promise<boolean>;
}

/** Line of the log on a request that is over. */
export interface RequestLine {
  readonly id: string;
  readonly method: string;
  readonly resource: ResponseClass['resource'];
  /**
   * Canonical request, the same for all URLs that ask for the same; the target without its permissions if it is not in
   * the contract. For uploads: the path without the query.
   */
  readonly asset: string;
  /** Host of external media. */
  readonly host?: string | undefined;
  readonly signature?: SignatureVerdict;
  /** 499 if the client left before there was a response. */
  readonly status: number;
  readonly code?: ErrorCode;
  readonly cache: CacheUse;
  /** Bytes of the body that were handed over to the system. */
  readonly bytes: number;
  readonly receivedBytes?: number;
  /** Time from the request's head to the end of its response. */
  readonly durationMs: number;
  readonly stagesMs: Readonly<Partial<Record<Stage, number>>>;
  /** Address of the client. */
  readonly client: string;
  /** 32 hexadecimal digits, the same for all who took part in the request; only where requests are traced. */
  readonly traceId?: string;
}

/** Log of requests: hits in memory at `debug`, since a line would cost more than the hit; everything else at `info`. */
export interface RequestLog {
  isLevelEnabled(level: 'debug' | 'info'): boolean;
  debug(line: RequestLine, message: string): void;
  info(line: RequestLine, message: string): void;
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
    return { log: pino({ level }, { write }), countLost: () => 0, flush: async () => true };
  }
  return createOutputLog(level, redact);
}

/** Creates a log that writes to the standard output in the background: a slow reader does not hold up the service. */
function createOutputLog(level: string, redact: (line: string) => string): ProcessLog {
  const output = pino.destination({
    dest: STANDARD_OUTPUT,
    sync: false,
    minLength: GATHERED_BYTES,
    maxLength: MAX_UNWRITTEN_BYTES,
    periodicFlush: GATHERING_MS,
  });
  // At the exit, pino would flush without a deadline, and retry for ever where a disk is full.
  output.flushSync = () => undefined;
  const log = pino({ level, hooks: { streamWrite: redact } }, output);
  let lost = 0;
  let reported = 0;
  output.on('drop', () => {
    lost += 1;
  });
  output.on('drain', () => {
    const lines = lost - reported;
    reported = lost;
    if (lines > 0) log.warn({ lines }, 'log lines were lost: the reader of the log is too slow');
  });
  // The next write retries what could not be written.
  output.on('error', () => undefined);
  const writeAll = async (): Promise<boolean> => {
    // A write under way leaves up to `minLength` bytes, which the second flush writes.
    for (let time = 0; time < 2; time += 1) {
      const drained = once(output, 'drain');
      output.flush();
      await drained;
    }
    return true;
  };
  const flush = (): Promise<boolean> =>
    Promise.race([
      writeAll().catch(() => true), // the disk is full, or the reader has gone
      sleep(FLUSH_TIMEOUT_MS, false),
    ]);
  return { log, countLost: () => lost, flush };
}

/** Replaces control characters in a line of JSON except line breaks and tabs: a terminal takes orders from them. */
function maskControls(line: string): string {
  return line
    .replaceAll(/\\(?:\\|[bfr]|u00(?:[01][\da-f]|7f))/gi, (sequence) =>
      sequence === '\\\\' ? sequence : '?',
    )
    .replaceAll(/[^\P{Cc}\n]/gu, '?');
}
