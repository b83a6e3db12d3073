import { spawn } from 'node:child_process';
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
