import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';

/** The running command line; its parent can be another program, such as npx. */
export type RunningCommand = ReturnType<typeof startDarkroom>;

type Environment = Readonly<Record<string, string>>;

/** Starts the command line in its own process group, with an open standard input. */
export function startDarkroom(
  args: readonly string[],
  environment: Environment,
  [program, ...before]: readonly [string, ...string[]] = [process.execPath, 'bin/darkroom.mjs'],
) {
  const child = spawn(program, [...before, ...args], {
    env: { PATH: process.env.PATH ?? '', ...environment },
    detached: true,
  });
  child.stdin.on('error', () => undefined); // the command may close it early
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  /** Exit status, or the signal that ended the process. */
  const ended = once(child, 'close').then(([status, signal]) => signal ?? status);
  return { child, stderr: () => stderr, ended };
}

/** Runs the command line to its end, as `npx darkroom` does. `environment` has all variables except PATH. */
export async function runDarkroom(
  args: readonly string[],
  options: { readonly environment?: Environment; readonly stdin?: Uint8Array } = {},
) {
  const { child, stderr, ended } = startDarkroom(args, options.environment ?? {});
  child.stdin.end(options.stdin);
  const stdout = await buffer(child.stdout);
  return { status: await ended, stdout, stderr: stderr() };
}
