import type { Readable, Writable } from 'node:stream';
import type { Environment } from '../config/setting.ts';
import { formatCauses } from '../contract/errors.ts';
import type { Log } from '../pipeline/ports.ts';

/** Exit statuses; those above 2 are BSD's (`sysexits.h`). */
export const exitStatus = {
  ok: 0,
  /** The command failed, or a check found a fault. */
  failure: 1,
  /** The command line is invalid: EX_USAGE. */
  usage: 64,
  /** The configuration is invalid, as when the service starts: EX_CONFIG. */
  configuration: 78,
} as const;

/** End of a command line: an exit status, or `stopped` if the process must die of the signal that stopped it. */
export type CommandEnd = number | 'stopped';

/** Access of a command to its process. */
export interface Terminal {
  readonly environment: Environment;
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly signal: AbortSignal;
}

export interface Command {
  readonly summary: string;
  /** Names of the operands; all are required, but those with `…`, of which there may be any number. */
  readonly operands: readonly string[];
  /** Options by name, without the hyphens: the name of the value, empty for a flag. */
  readonly options?: Readonly<Record<string, string>>;
  /** State of its work after a stop, in words. */
  readonly stopped?: string;
  /** Text of `--help` after summary and usage. */
  readonly help: string;
  /**
   * @returns the exit status
   * @throws CommandError, ConfigError; any error once the command was stopped; any other error is a bug of ours
   */
  run(operands: readonly string[], terminal: Terminal, options: CommandOptions): Promise<number>;
}

/** Options of a command line: `true` for a flag. */
export type CommandOptions = Readonly<Record<string, string | boolean | undefined>>;

/** Failure of a command, in words for the person who ran it. */
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

/** Returns a fault of the command line itself, in words for the person who typed it. */
export function usageError(message: string): CommandError {
  return new CommandError(message, { exitStatus: exitStatus.usage });
}

export function writeLine(stream: Writable, line: string): void {
  stream.write(`${line}\n`);
}

/** Formats host and port of a listener for a URL; a listener on all addresses is reached by loopback. */
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

/** Formats a number of bytes for a person: `812 bytes`, `1.2 MiB`. */
export function formatByteSize(size: number): string {
  const sizeBytes = Math.round(size); // a mean may be fractional
  if (sizeBytes < 1024) return countOf(sizeBytes, 'byte');
  const power = Math.min(Math.floor(Math.log2(sizeBytes) / 10), units.length);
  return `${(sizeBytes / 1024 ** power).toFixed(1)} ${units[power - 1] ?? ''}`;
}

/** Formats a number with its noun: `1 file`, `2 files`. */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

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

export const silentLog: Log = { info: ignore, warn: ignore, error: ignore };

function ignore(): void {}
