import type { Readable, Writable } from 'node:stream';
import type { Environment } from '../config/setting.ts';
import { formatCauses } from '../contract/errors.ts';
import type { Log } from '../pipeline/ports.ts';

/** Exit statuses; those above 2 are BSD's (`sysexits.h`). */
export const exitStatus = {
  ok: 0,
  failure: 1,
  /** EX_USAGE. */
  usage: 64,
  /** EX_CONFIG, as when the service starts. */
  configuration: 78,
} as const;

/** `stopped` if the process must die of the signal that stopped it. */
export type CommandEnd = number | 'stopped';

export interface Terminal {
  readonly environment: Environment;
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly signal: AbortSignal;
}

export interface Command {
  readonly summary: string;
  /** All are required, except one with `…`, which may be repeated. */
  readonly operands: readonly string[];
  /** Without the hyphens: the name of the value, or empty for a flag. */
  readonly options?: Readonly<Record<string, string>>;
  /** State of the work after a stop, in words. */
  readonly stopped?: string;
  /** Text of `--help` after summary and usage. */
  readonly help: string;
  /**
   * Returns the exit status. @throws CommandError, ConfigError; any error after the command was stopped; other errors
   * are bugs
   */
  run(operands: readonly string[], terminal: Terminal, options: CommandOptions): Promise<number>;
}

/** `true` for a flag. */
export type CommandOptions = Readonly<Record<string, string | boolean | undefined>>;

/** Failure described for the person who ran the command. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitStatus: number;

  constructor(
    message: string,
    {
      exitStatus: status = exitStatus.failure,
      cause,
    }: { exitStatus?: number; cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.exitStatus = status;
  }
}

export function usageError(message: string): CommandError {
  return new CommandError(message, { exitStatus: exitStatus.usage });
}

export function writeLine(stream: Writable, line: string): void {
  stream.write(`${line}\n`);
}

/** A listener on all addresses is reached by loopback. */
export function formatOrigin({
  host,
  port,
}: {
  readonly host: string;
  readonly port: number;
}): string {
  if (host === '0.0.0.0') return `127.0.0.1:${port}`;
  if (host === '::') return `[::1]:${port}`;
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

const units = ['KiB', 'MiB', 'GiB', 'TiB'] as const;

/** Returns for example `812 bytes` or `1.2 MiB`. */
export function formatByteSize(size: number): string {
  const sizeBytes = Math.round(size); // a mean may be fractional
  if (sizeBytes < 1024) return countOf(sizeBytes, 'byte');
  const power = Math.min(Math.floor(Math.log2(sizeBytes) / 10), units.length);
  return `${(sizeBytes / 1024 ** power).toFixed(1)} ${units[power - 1] ?? ''}`;
}

/** Returns for example `1 file` or `2 files`. */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Writes only errors, a sentence each, with their causes. */
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

export const silentLog: Log = { info: ignore, warn: ignore, error: ignore };

function ignore(): void {}
