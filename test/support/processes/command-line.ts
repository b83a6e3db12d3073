import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';

/** The real command line while it runs; whatever starts it, such as npx, may be in between. */
export type RunningCommand = ReturnType<typeof startDarkroom>;

type Environment = Readonly<Record<string, string>>;

/** Starts the real command line, with a standard input that stays open, in a process group of its own. */
export function startDarkroom(
  args: readonly string[],
  environment: Environment,
  [program, ...before]: readonly [string, ...string[]] = [process.execPath, 'bin/darkroom.mjs'],
) {
  const child = spawn(program, [...before, ...args], {
    env: { PATH: process.env.PATH ?? '', ...environment },
    detached: true,
  });
  child.stdin.on('error', () => undefined); // it need not read to the end
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  /** Its exit status, or the signal that it has died of. */
  const ended = once(child, 'close').then(([status, signal]) => signal ?? status);
  return { child, stderr: () => stderr, ended };
}

/**
 * Runs the real command line, as `npx darkroom` does, to its end.
 *
 * @param options `environment`: all variables that it has, besides PATH
 */
export async function runDarkroom(
  args: readonly string[],
  options: { readonly environment?: Environment; readonly stdin?: Uint8Array } = {},
) {
  const { child, stderr, ended } = startDarkroom(args, options.environment ?? {});
  child.stdin.end(options.stdin);
  const stdout = await buffer(child.stdout);
  return { status: await ended, stdout, stderr: stderr() };
}
