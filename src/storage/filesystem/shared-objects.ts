import { randomBytes } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { type FileHandle, open, readdir, realpath, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import {
  MAX_OBJECT_BYTES,
  type SharedObject,
  type SharedObjects,
  type WriteCondition,
} from '../../pipeline/blocks/ports.ts';
import { syncDirectory, systemCodeOf, unlessMissing, writeAtomically } from './files.ts';

/** Part of the name of a file that will replace a version, before the tag of that version. */
const CLAIM = '.next-';

const TEMPORARY = '.incoming-';

/** Age after which a claim belongs to a killed process. */
const DEAD_AFTER_MS = 5_000;

/** The same for an unfinished file of an earlier release, which has a name like those of running uploads. */
const STALE_AFTER_MS = 300_000;

const MAX_CREATE_ATTEMPTS = 3;

/**
 * Shared objects as files of one directory, such as `blocks.jsonl` and `blocks.jsonl.tag-key`. A writer creates the new
 * file under a name with the tag of the replaced version, which only one writer can; then it renames the file.
 *
 * Not covered: a writer that pauses for five seconds between its last check and its rename; replicas on several hosts
 * whose file system does not create and rename files atomically.
 */
export class DirectoryObjects implements SharedObjects {
  readonly #directory: string;
  readonly #listName: string;

  private constructor(directory: string, listName: string) {
    this.#directory = directory;
    this.#listName = listName;
  }

  /** Removes the leftovers of killed processes. @throws Error if the directory is missing, or cannot be read */
  static async open(file: string): Promise<DirectoryObjects> {
    const objects = new DirectoryObjects(await realpath(dirname(file)), basename(file));
    await objects.#removeLeftovers();
    return objects;
  }

  async read(name: string): Promise<SharedObject | undefined> {
    let file: FileHandle | undefined;
    try {
      file = await open(this.#pathOf(name));
      const status = await file.stat({ bigint: true });
      const sizeBytes = Number(status.size);
      if (sizeBytes > MAX_OBJECT_BYTES) {
        throw new Error(`${this.#pathOf(name)} exceeds ${MAX_OBJECT_BYTES} bytes.`);
      }
      const bytes = Buffer.alloc(sizeBytes);
      const { bytesRead } = await file.read(bytes, 0, sizeBytes, 0);
      if (bytesRead < sizeBytes) throw new Error(`${this.#pathOf(name)} was truncated.`);
      return { bytes, tag: tagOf(status) };
    } catch (error) {
      if (systemCodeOf(error) === 'ENOENT') return undefined;
      throw error;
    } finally {
      await file?.close();
    }
  }

  async findTag(name: string): Promise<string | undefined> {
    const status = await unlessMissing(stat(this.#pathOf(name), { bigint: true }));
    return status && tagOf(status);
  }

  async write(
    name: string,
    bytes: Uint8Array,
    condition: WriteCondition,
  ): Promise<string | undefined> {
    const written =
      condition === 'absent'
        ? await this.#create(this.#pathOf(name), bytes)
        : await this.#replace(name, bytes, condition.tag);
    if (written !== undefined) await syncDirectory(this.#directory);
    return written;
  }

  async list(prefix: string): Promise<readonly string[]> {
    const start = `${this.#listName}.`;
    return (await readdir(this.#directory))
      .filter((file) => file.startsWith(start + prefix))
      .map((file) => file.slice(start.length))
      .filter((name) => /^[\w-]+$/.test(name));
  }

  async remove(name: string): Promise<void> {
    await unlessMissing(unlink(this.#pathOf(name)));
  }

  async #create(path: string, bytes: Uint8Array): Promise<string | undefined> {
    for (let attempt = 1; ; attempt += 1) {
      const temporaryPath = this.#pathOf('') + TEMPORARY + randomBytes(16).toString('hex');
      try {
        const target = { path, temporaryPath, root: this.#directory, isNew: true };
        return tagOf(await writeAtomically([bytes], target));
      } catch (error) {
        const code = systemCodeOf(error);
        if (code === 'EEXIST') return undefined;
        // A starting process removed the unfinished file.
        if (code !== 'ENOENT' || attempt === MAX_CREATE_ATTEMPTS) throw error;
      }
    }
  }

  async #replace(name: string, bytes: Uint8Array, tag: string): Promise<string | undefined> {
    if ((await this.findTag(name)) !== tag) return undefined;
    const path = this.#pathOf(name);
    const claim = path + CLAIM + tag;
    const written = await this.#create(claim, bytes);
    if (written === undefined) {
      const isDead = (await this.#ageMsOf(basename(claim))) > DEAD_AFTER_MS;
      if (isDead) await unlessMissing(unlink(claim));
      return undefined;
    }
    const isCurrent = (await this.findTag(name)) === tag;
    await unlessMissing(isCurrent ? rename(claim, path) : unlink(claim));
    return (await this.findTag(name)) === written ? written : undefined;
  }

  /** Removes unfinished files and claims; running processes create theirs again. */
  async #removeLeftovers(): Promise<void> {
    const files = await readdir(this.#directory);
    const isOurs = (file: string): boolean =>
      file.startsWith(`${this.#listName}.`) && /\.(next|incoming)-[\w-]+$/.test(file);
    const isStale = async (file: string): Promise<boolean> => {
      if (!/^\.incoming-[\da-f]{32}$/.test(file)) return false;
      return (await this.#ageMsOf(file)) > STALE_AFTER_MS;
    };
    for (const file of files) {
      if (!isOurs(file) && !(await isStale(file))) continue;
      await unlessMissing(unlink(join(this.#directory, file)));
    }
  }

  async #ageMsOf(file: string): Promise<number> {
    const status = await unlessMissing(stat(join(this.#directory, file)));
    return status === undefined ? 0 : Date.now() - status.mtimeMs;
  }

  #pathOf(name: string): string {
    return join(this.#directory, name === '' ? this.#listName : `${this.#listName}.${name}`);
  }
}

/** Returns the tag of a file, which links and renaming do not change. */
function tagOf({ ino, size, mtimeNs }: BigIntStats): string {
  return [ino, size, mtimeNs].map((value) => value.toString(36)).join('-');
}
