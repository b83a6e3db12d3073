import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Logger, pino } from 'pino';
import type { ErrorCode } from '../contract/errors.ts';
import type { SignatureVerdict } from '../contract/signing/attachment-signature.ts';
import type { ResponseClass } from '../pipeline/meter.ts';
import type { CacheUse, Stage } from '../pipeline/request-trace.ts';
import { createRedaction } from './redaction.ts';

const STANDARD_OUTPUT = 1;

/** Maximum number of bytes that wait for a slow reader; further lines are dropped and counted. */
const MAX_UNWRITTEN_BYTES = 8 * 1024 * 1024;

/** Lines are written together, up to this size or time in milliseconds, since each write wakes a thread. */
const GATHERED_BYTES = 8 * 1024;
const GATHERING_MS = 100;

/**
 * Time that the last lines may take, in milliseconds, in parts: if the event loop was blocked meanwhile, at most one of
 * them expires before Node reports the finished write.
 */
const FLUSH_TIMEOUT_MS = 500;
const FLUSH_TIMEOUT_PARTS = 5;

export interface ProcessLog {
  readonly log: Logger;
  readonly countLost: () => number;
  /** Writes the last lines. Returns whether the process can exit: Node waits for a write that hangs. */
  readonly flush: () => Promise<boolean>;
}

export interface RequestLine {
  readonly id: string;
  readonly method: string;
  readonly resource: ResponseClass['resource'];
  /** `resultKey` of the canonical request, else the redacted target; for uploads, the path without the query. */
  readonly asset: string;
  readonly host?: string | undefined;
  readonly signature?: SignatureVerdict;
  /** 499 if the client disconnected before the response. */
  readonly status: number;
  readonly code?: ErrorCode;
  readonly cache: CacheUse;
  readonly bytes: number;
  readonly receivedBytes?: number;
  readonly durationMs: number;
  readonly stagesMs: Readonly<Partial<Record<Stage, number>>>;
  readonly client: string;
  /** Trace id of W3C Trace Context. Omit without tracing. */
  readonly traceId?: string;
}

/** Access log: memory hits at `debug`, since a line takes longer than the hit; other requests at `info`. */
export interface RequestLog {
  isLevelEnabled(level: 'debug' | 'info'): boolean;
  debug(line: RequestLine, message: string): void;
  info(line: RequestLine, message: string): void;
}

/**
 * Creates the log, which redacts each line when it is written.
 *
 * @param secrets texts to redact
 * @param terminal writes lines for people. Omit to write JSON lines to standard output
 */
export async function createLog(
  level: string,
  secrets: readonly (string | undefined)[],
  terminal: { write(text: string): unknown } | undefined,
): Promise<ProcessLog> {
  const redact = createRedaction(secrets);
  if (terminal !== undefined) {
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

/** Creates a log that writes in the background, so that a slow reader does not delay the service. */
function createOutputLog(level: string, redact: (line: string) => string): ProcessLog {
  const output = pino.destination({
    dest: STANDARD_OUTPUT,
    sync: false,
    minLength: GATHERED_BYTES,
    maxLength: MAX_UNWRITTEN_BYTES,
    periodicFlush: GATHERING_MS,
  });
  // At the exit, pino would flush without a deadline, and retry forever if the disk is full.
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
    if (lines > 0)
      log.warn({ lines }, 'log lines were lost because the reader of the log is too slow');
  });
  // The next write retries a failed one.
  output.on('error', () => undefined);
  const writeAll = async (): Promise<boolean> => {
    // A running write leaves up to `minLength` bytes, which the second flush writes.
    for (let time = 0; time < 2; time += 1) {
      const drained = once(output, 'drain');
      output.flush();
      await drained;
    }
    return true;
  };
  const timeout = async (): Promise<boolean> => {
    for (let part = 0; part < FLUSH_TIMEOUT_PARTS; part += 1) {
      await sleep(FLUSH_TIMEOUT_MS / FLUSH_TIMEOUT_PARTS);
    }
    return false;
  };
  const flush = (): Promise<boolean> =>
    Promise.race([
      writeAll().catch(() => true), // the disk is full, or the reader has ended
      timeout(),
    ]);
  return { log, countLost: () => lost, flush };
}

/** Masks control characters in a JSON line except line breaks and tabs, since terminals interpret them. */
function maskControls(line: string): string {
  return line
    .replaceAll(/\\(?:\\|[bfr]|u00(?:[01][\da-f]|7f))/gi, (sequence) =>
      sequence === '\\\\' ? sequence : '?',
    )
    .replaceAll(/[^\P{Cc}\n]/gu, '?');
}
