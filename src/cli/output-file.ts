import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { open, realpath, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CommandFault } from './command.ts';

/**
 * Writes a file that is there whole or not at all: it gets its name when it is on the disk. A link is
 * followed, and its target replaced; what is no file, such as a pipe or `/dev/null`, is written to as it
 * is.
 *
 * @throws CommandFault if it cannot be written, or `chunks` fail; `signal.reason`
 */
export async function writeOutputFile(
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const target = await realpath(path).catch(() => path);
  const status = await stat(target).catch(() => undefined);
  if (status?.isDirectory()) throw new CommandFault(`${path} is a folder`);
  if (status !== undefined && !status.isFile()) {
    return writeChunks(chunks, createWriteStream(target), path, signal);
  }
  const incoming = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString('hex')}`);
  const file = await open(incoming, 'wx').catch((cause: unknown) => {
    throw new CommandFault(`${path} cannot be written`, { cause });
  });
  try {
    await writeChunks(chunks, file.createWriteStream({ flush: true }), path, signal);
    await rename(incoming, target);
  } catch (error) {
    await unlink(incoming).catch(() => undefined);
    throw error;
  }
}

async function writeChunks(
  chunks: AsyncIterable<Uint8Array>,
  stream: Writable,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    await pipeline(chunks, stream, { signal });
  } catch (cause) {
    signal.throwIfAborted();
    throw new CommandFault(`${path} cannot be written`, { cause });
  }
}
