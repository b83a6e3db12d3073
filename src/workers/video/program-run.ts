import type { Socket } from 'node:net';
import {
  type ForkServer,
  LOST_WITH_FORK_SERVER,
  type ProgramStart,
} from '../fork-server/client.ts';
import { overloaded } from '../worker-errors.ts';

export interface ProgramRun extends ProgramStart {
  readonly args: readonly string[];
  readonly input: Uint8Array;
  /** Maximum bytes of standard output; the program is killed beyond. */
  readonly maxOutputBytes: number;
  readonly onLine: (line: string) => void;
}

/** A program that failed or wrote too much output. */
export class ProgramError extends Error {
  override readonly name = 'ProgramError';
}

/**
 * Runs a program, yields its standard output, and kills it with all its processes when the caller stops reading.
 *
 * @throws ProgramError if its status is not 0, or it writes too much; MediaError `OVERLOADED` if it could not start; or
 *   `signal.reason`
 */
export async function* runProgram(
  forkServer: ForkServer,
  { args, input, maxOutputBytes, onLine, ...start }: ProgramRun,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  signal.throwIfAborted();
  let opened: Socket | undefined;
  let resolveChannel: (channel: Socket | undefined) => void;
  const opening = new Promise<Socket | undefined>((resolve) => {
    resolveChannel = resolve;
  });
  let kill: () => void = () => undefined;
  const ended = new Promise<string>((resolve) => {
    const onStarted = (_: number, channel: Socket): void => {
      opened = channel.on('error', () => undefined);
      resolveChannel(channel);
    };
    const onEnd = (ending: string): void => {
      resolveChannel(undefined);
      resolve(ending);
    };
    // All processes of a PID namespace end together in any case.
    const isGroup = !start.sandbox.isIsolated;
    kill = forkServer.startProgram(start, args, { onStarted, onLine, onEnd }, isGroup);
  });
  signal.addEventListener('abort', kill, { once: true });
  try {
    const channel = await opening;
    if (channel !== undefined) yield* exchange(channel, input, maxOutputBytes);
    const ending = await ended;
    signal.throwIfAborted();
    if (channel === undefined || ending === LOST_WITH_FORK_SERVER)
      throw overloaded(`The video decoder could not be started: ${ending}.`);
    if (ending !== 'status 0') throw new ProgramError(`it ended with ${ending}`);
  } finally {
    signal.removeEventListener('abort', kill);
    kill();
    opened?.destroy();
  }
}

async function* exchange(
  channel: Socket,
  input: Uint8Array,
  maxOutputBytes: number,
): AsyncGenerator<Uint8Array, void> {
  // A program that reads no input may have ended: an empty write would fail and discard its output.
  if (input.length > 0) channel.write(input);
  channel.end();
  let bytes = 0;
  try {
    for await (const chunk of channel as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      if (bytes > maxOutputBytes) break;
      yield chunk;
    }
  } catch {
    // The program ended before it had read its input; its exit status has the reason.
  }
  if (bytes > maxOutputBytes) throw new ProgramError(`it wrote more than ${maxOutputBytes} bytes`);
}
