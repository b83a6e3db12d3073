import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { buffer } from 'node:stream/consumers';

/** What a command has left behind. */
export interface CommandResult {
  readonly status: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

interface CommandOptions {
  /** All variables that it has, besides PATH. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly stdin?: Uint8Array;
}

/** Runs the real command line, as `npx darkroom` does, to its end. */
export async function runDarkroom(
  args: readonly string[],
  { environment = {}, stdin }: CommandOptions = {},
): Promise<CommandResult> {
  const child = spawn(process.execPath, ['bin/darkroom.mjs', ...args], {
    env: { PATH: process.env.PATH ?? '', ...environment },
  });
  child.stdin.on('error', () => undefined); // it need not read to the end
  child.stdin.end(stdin);
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const stdout = await buffer(child.stdout);
  return { status: await exited, stdout, stderr };
}

/** The real command line while it runs; whatever starts it, such as npx, may be in between. */
export interface RunningCommand {
  readonly child: ChildProcessWithoutNullStreams;
  /** What it has said on its standard error so far. */
  readonly stderr: () => string;
  /** Its exit status, or the signal that it has died of. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

/** Starts the real command line, with a standard input that stays open, in a process group of its own. */
export function startDarkroom(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  [program, ...before]: readonly [string, ...string[]] = [process.execPath, 'bin/darkroom.mjs'],
): RunningCommand {
  const child = spawn(program, [...before, ...args], {
    env: { PATH: process.env.PATH ?? '', ...environment },
    detached: true,
  });
  child.stdin.on('error', () => undefined);
  child.stdout.resume();
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once('close', (status, signal) => resolve(signal ?? status));
  });
  return { child, stderr: () => stderr, ended };
}
