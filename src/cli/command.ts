import type { Readable, Writable } from 'node:stream';
import type { Environment } from '../config/setting.ts';

/** How a command ends; those above 2 are BSD's (`sysexits.h`). */
export const exitStatus = {
  ok: 0,
  /** What was asked for was not done, or not all is well. */
  fault: 1,
  /** The command line is no command: EX_USAGE. */
  usage: 64,
  /** The configuration is not valid, as when the service starts: EX_CONFIG. */
  configuration: 78,
} as const;

/** How a command line ends: with an exit status, or as the signal would have ended it that has stopped it. */
export type CommandEnd = number | 'stopped';

/** What a command has of the process that it runs in. */
export interface Terminal {
  readonly environment: Environment;
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** Columns of the terminal that `stderr` is; `undefined` where it is none. */
  readonly columns: number | undefined;
  /** Aborts when the command is stopped. */
  readonly signal: AbortSignal;
}

/** One command of the command line. */
export interface Command {
  /** What it does, in a line. */
  readonly summary: string;
  /** Names of its operands, all of which it needs. */
  readonly operands: readonly string[];
  /** What `--help` tells after summary and usage. */
  readonly help: string;
  /**
   * Does it.
   *
   * @param operands one for each name
   * @returns the exit status
   * @throws CommandFault, ConfigError; CommandStopped or `terminal.signal.reason` where it was stopped; any
   *   other error is a bug of ours
   */
  run(operands: readonly string[], terminal: Terminal): Promise<number>;
}

/** Why something could not be done, in words for the person who asked for it. */
export class CommandFault extends Error {
  override readonly name = 'CommandFault';
  readonly exitStatus: number;

  constructor(
    message: string,
    { exitStatus: status = exitStatus.fault, cause }: { exitStatus?: number; cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.exitStatus = status;
  }
}

/** A fault of the command line itself, in words for the person who typed it. */
export function usageFault(message: string): CommandFault {
  return new CommandFault(message, { exitStatus: exitStatus.usage });
}

/** That a command was stopped, in words on what has become of its work. */
export class CommandStopped extends Error {
  override readonly name = 'CommandStopped';
}

/** Writes one line. */
export function writeLine(stream: Writable, line: string): void {
  stream.write(`${line}\n`);
}
