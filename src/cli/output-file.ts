import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { writeAtomically } from '../storage/filesystem/files.ts';
import { CommandError } from './command.ts';

/**
 * Writes a file atomically. A replaced file keeps its permissions. Follows a link; writes directly to a pipe, or to a
 * device such as `/dev/null`.
 * @throws CommandError if the file cannot be written, or `chunks` fail; `signal.reason`
 */
export async function writeOutputFile(
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const fail = (cause: unknown): never => {
    signal.throwIfAborted();
    throw new CommandError(`${path} cannot be written`, { cause });
  };
  const directory = await realpath(dirname(path)).catch(fail);
  // A new file. Only a directory may have a trailing slash.
  const newPath = join(directory, basename(path), path.endsWith('/') ? '/' : '');
  const target = await realpath(path).catch(() => newPath);
  const status = await stat(target).catch(() => undefined);
  if (status?.isDirectory()) throw new CommandError(`${path} is a directory`);
  if (status !== undefined && !status.isFile()) {
    return pipeline(chunks, createWriteStream(target), { signal }).catch(fail);
  }
  const root = dirname(target);
  // Without the target's name, which may already have the maximum length.
  const temporaryPath = join(root, `.darkroom-${randomBytes(8).toString('hex')}`);
  const output = { path: target, temporaryPath, root, mode: status?.mode };
  await writeAtomically(Readable.from(chunks, { signal }), output).catch(fail);
}
