import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { readlink, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { writeWholeFile } from '../storage/filesystem/whole-file.ts';
import { CommandFault } from './command.ts';

/** Most links to links that are followed: Linux's limit. */
const MAX_LINKS = 40;

/**
 * Writes a file completely or not at all: the file gets its name once it is on the disk. Users with access to the
 * replaced file keep it. A link is followed, and its target replaced or created; a pipe, or a device such as
 * `/dev/null`, is written to directly.
 *
 * @throws CommandFault if the file cannot be written, or `chunks` fail; `signal.reason`
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
  // The target's name is not part of it, which may already have the maximum length.
  const temporaryPath = join(root, `.darkroom-${randomBytes(8).toString('hex')}`);
  const place = { path: target, temporaryPath, root, accessAs: status };
  await writeWholeFile(Readable.from(chunks, { signal }), place).catch(fail);
}

/**
 * Resolves the target of a path, even if the target does not exist yet.
 *
 * @throws Error if the links form a loop
 */
async function findTarget(path: string): Promise<string> {
  let target = path;
  for (let links = 0; links < MAX_LINKS; links += 1) {
    const real = await realpath(target).catch(() => undefined);
    if (real !== undefined) return real;
    const link = await readlink(target).catch(() => undefined);
    const folder = await realpath(dirname(target));
    // The path keeps a slash at its end, which only a folder may have.
    if (link === undefined) return join(folder, basename(target), target.endsWith('/') ? '/' : '');
    target = resolve(folder, link);
  }
  throw new Error('too many links');
}
