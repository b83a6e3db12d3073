import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { readlink, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { writeWholeFile } from '../storage/filesystem/whole-file.ts';
import { CommandFault } from './command.ts';

/** Links to links that are followed: as many as Linux follows. */
const MAX_LINKS = 40;

/**
 * Writes a file that is there whole or not at all: it gets its name when it is on the disk. The users who had
 * access to the file that it replaces have access to it. A link is followed, and its target replaced or made;
 * what is no file, such as a pipe or `/dev/null`, is written to as it is.
 *
 * @throws CommandFault if it cannot be written, or `chunks` fail; `signal.reason`
 */
export async function writeOutputFile(
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const fail = (cause: unknown): never => {
    signal.throwIfAborted();
    throw new CommandFault(`${path} cannot be written`, { cause });
  };
  const target = await findTarget(path).catch(fail);
  const status = await stat(target).catch(() => undefined);
  if (status?.isDirectory()) throw new CommandFault(`${path} is a folder`);
  if (status !== undefined && !status.isFile()) {
    return pipeline(chunks, createWriteStream(target), { signal }).catch(fail);
  }
  const root = dirname(target);
  // Not from the target's name, which may be as long as a name can be.
  const temporaryPath = join(root, `.darkroom-${randomBytes(8).toString('hex')}`);
  const place = { path: target, temporaryPath, root, accessAs: status };
  await writeWholeFile(Readable.from(chunks, { signal }), place).catch(fail);
}

/**
 * Where a path leads, also where nothing is there yet.
 *
 * @throws Error if it leads round in circles
 */
async function findTarget(path: string): Promise<string> {
  let target = path;
  for (let links = 0; links < MAX_LINKS; links += 1) {
    const real = await realpath(target).catch(() => undefined);
    if (real !== undefined) return real;
    const link = await readlink(target).catch(() => undefined);
    const folder = await realpath(dirname(target));
    // With a slash at its end, which only a folder may have.
    if (link === undefined) return join(folder, basename(target), target.endsWith('/') ? '/' : '');
    target = resolve(folder, link);
  }
  throw new Error('too many links');
}
