import { randomBytes } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import {
  type FileHandle,
  link,
  open,
  readdir,
  realpath,
  rename,
  stat,
  unlink,
} from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import {
  LEFT_BEHIND_AFTER_MS,
  type ObjectBody,
  type ObjectPart,
  type SharedObject,
  type SharedObjects,
  type WriteCondition,
} from '../../pipeline/blocks/ports.ts';
import { systemCodeOf, unlessMissing } from './system-errors.ts';
import { syncFolder, writeWholeFile } from './whole-file.ts';

/** Infix of a file that claims to replace a version; the version's tag follows. */
const CLAIM = '.next-';

/** Name of an unfinished file, before 32 hexadecimal digits. */
const TEMPORARY = '.incoming-';

const DEAD_AFTER_MS = 10_000;

/**
 * Shared objects as files of one folder, such as `blocks.jsonl` and `blocks.jsonl.17`.
 *
 * Who replaces a version first links the complete new file to a name that has the tag of the old version: only one
 * of several writers succeeds. A claim stays until the next replacement; another writer completes a dead process's.
 *
 * Not covered: a writer that is stopped for ten seconds between its last check and its rename; file systems without hard
 * links.
 */
export class FolderObjects implements SharedObjects {
  readonly #folder: string;
  readonly #listName: string;

  private constructor(folder: string, listName: string) {
    this.#folder = folder;
    this.#listName = listName;
  }

  /**
   * Opens the folder of a list; what killed processes have left in it is removed after five minutes.
   *
   * @throws Error if the folder is missing, or cannot be read
   */
  static async open(file: string): Promise<FolderObjects> {
    const objects = new FolderObjects(await realpath(dirname(file)), basename(file));
    const left = await objects.#findLeftFiles();
    const remove = () => Promise.allSettled(left.map((path) => unlink(path)));
    if (left.length > 0) setTimeout(() => void remove(), LEFT_BEHIND_AFTER_MS).unref();
    return objects;
  }

  async read(name: string, part?: ObjectPart): Promise<SharedObject | undefined> {
    let file: FileHandle | undefined;
    try {
      file = await open(this.#pathOf(name));
      const status = await file.stat({ bigint: true });
      const sizeBytes = Number(status.size);
      const first = Math.min(part?.first ?? 0, sizeBytes);
      const bytes = Buffer.alloc(Math.min(part?.lengthBytes ?? sizeBytes, sizeBytes - first));
      const { bytesRead } = await file.read(bytes, 0, bytes.length, first);
      if (bytesRead < bytes.length) throw new Error(`${this.#pathOf(name)} has become shorter.`);
      return { bytes, tag: tagOf(status), sizeBytes };
    } catch (error) {
      if (systemCodeOf(error) === 'ENOENT') return undefined;
      throw error;
    } finally {
      await file?.close();
    }
  }

  async write(
    name: string,
    body: ObjectBody,
    condition: WriteCondition,
  ): Promise<string | undefined> {
    const path = this.#pathOf(name);
    const written =
      condition === 'absent'
        ? await this.#create(path, body)
        : await this.#replace(path, body, condition.tag);
    if (written !== undefined) await syncFolder(this.#folder);
    return written;
  }

  async list(prefix: string): Promise<readonly string[]> {
    const start = `${this.#listName}.`;
    return (await readdir(this.#folder))
      .filter((file) => file.startsWith(start + prefix) && !file.includes(CLAIM))
      .map((file) => file.slice(start.length));
  }

  async remove(name: string): Promise<void> {
    const path = this.#pathOf(name);
    await unlessMissing(unlink(path));
    await this.#removeClaims(path);
  }

  async #create(path: string, body: ObjectBody): Promise<string | undefined> {
    const chunks = body instanceof Uint8Array ? [body] : body.chunks();
    const temporaryPath = this.#temporaryPath();
    try {
      const place = { path, temporaryPath, root: this.#folder, isNew: true };
      return tagOf(await writeWholeFile(chunks, place));
    } catch (error) {
      if (systemCodeOf(error) === 'EEXIST') return undefined;
      throw error;
    }
  }

  async #replace(path: string, body: ObjectBody, tag: string): Promise<string | undefined> {
    if ((await findStatus(path))?.tag !== tag) return undefined;
    const claim = path + CLAIM + tag;
    const written = await this.#create(claim, body);
    if (written === undefined) {
      const ageMs = Date.now() - ((await findStatus(claim))?.modifiedMs ?? Infinity);
      if (ageMs > DEAD_AFTER_MS) await this.#complete(claim, path, tag);
      return undefined;
    }
    await this.#complete(claim, path, tag);
    // The claim is void if the version was replaced before, and its claim removed meanwhile.
    const isReplaced = (await findStatus(path))?.tag === written;
    await this.#removeClaims(path, isReplaced ? claim : undefined);
    return isReplaced ? written : undefined;
  }

  /** Puts a claimed version in the place of the old one, if that is still there. */
  async #complete(claim: string, path: string, tag: string): Promise<void> {
    const temporaryPath = this.#temporaryPath();
    try {
      await link(claim, temporaryPath);
      if ((await findStatus(path))?.tag === tag) await rename(temporaryPath, path);
    } catch (error) {
      if (systemCodeOf(error) !== 'ENOENT') throw error; // another writer has completed the claim
    } finally {
      await unlessMissing(unlink(temporaryPath));
    }
  }

  /** Finds unfinished files, and claims to replace objects that are missing. */
  async #findLeftFiles(): Promise<readonly string[]> {
    const files = await readdir(this.#folder);
    const isLeft = (file: string): boolean => {
      if (file.startsWith(TEMPORARY)) return /^[\da-f]{32}$/.test(file.slice(TEMPORARY.length));
      const [object = '', tag] = file.split(CLAIM, 2);
      const isOurs = object === this.#listName || object.startsWith(`${this.#listName}.`);
      return isOurs && tag !== undefined && !files.includes(object);
    };
    return files.filter(isLeft).map((file) => join(this.#folder, file));
  }

  async #removeClaims(path: string, current?: string): Promise<void> {
    const files = (await readdir(this.#folder)).map((file) => join(this.#folder, file));
    const old = files.filter((file) => file.startsWith(path + CLAIM) && file !== current);
    await Promise.all(old.map((claim) => unlessMissing(unlink(claim))));
  }

  #temporaryPath(): string {
    return join(this.#folder, TEMPORARY + randomBytes(16).toString('hex'));
  }

  #pathOf(name: string): string {
    return join(this.#folder, name === '' ? this.#listName : `${this.#listName}.${name}`);
  }
}

/** Returns the tag of a file, which a link or a new name does not change. */
function tagOf({ ino, size, mtimeNs }: BigIntStats): string {
  return [ino, size, mtimeNs].map((value) => value.toString(36)).join('-');
}

async function findStatus(path: string) {
  const status = await unlessMissing(stat(path, { bigint: true }));
  return status && { tag: tagOf(status), modifiedMs: Number(status.mtimeMs) };
}
