import { randomBytes } from 'node:crypto';
import { createWriteStream, type Stats } from 'node:fs';
import { type FileHandle, open, readlink, realpath, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { CommandFault } from './command.ts';

/** Links to links that are followed: as many as Linux follows. */
const MAX_LINKS = 40;

/** Bits of a mode that say who may do what. */
const PERMISSIONS = 0o7777;

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
  // Not from the target's name, which may be as long as a name can be.
  const incoming = join(dirname(target), `.darkroom-${randomBytes(8).toString('hex')}`);
  const mode = status === undefined ? 0o666 : 0o600;
  const file = await open(incoming, 'wx', mode).catch(fail);
  try {
    if (status !== undefined) await copyPermissions(file, status);
    await pipeline(chunks, file.createWriteStream({ flush: true }), { signal }).catch(fail);
    await rename(incoming, target).catch(fail);
  } catch (error) {
    await unlink(incoming).catch(() => undefined);
    throw error;
  }
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
    if (link === undefined) return target;
    const folder = await realpath(dirname(target)).catch(() => dirname(target));
    target = resolve(folder, link);
  }
  throw new Error('too many links');
}

/** A file of another user stays theirs where we may give it away; else it becomes ours. */
async function copyPermissions(file: FileHandle, { mode, uid, gid }: Stats): Promise<void> {
  await file.chown(uid, gid).catch(() => undefined);
  await file.chmod(mode & PERMISSIONS);
}
