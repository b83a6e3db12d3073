import { randomBytes } from 'node:crypto';

/** An object, or a part of one. */
export interface SharedObject {
  readonly bytes: Uint8Array;
  /** Tag of this version of the object: a version with other bytes has another one. */
  readonly tag: string;
  readonly sizeBytes: number;
}

/** Part of an object: at most so many bytes from an offset on. */
export interface ObjectPart {
  readonly first: number;
  readonly lengthBytes: number;
}

/** Content of an object: the bytes, or a stream of known length, which is opened once. */
export type ObjectBody =
  | Uint8Array
  | { readonly sizeBytes: number; readonly chunks: () => AsyncIterable<Uint8Array> };

/** Condition of a write: the object is missing, or has this version. */
export type WriteCondition = 'absent' | { readonly tag: string };

/**
 * Small named objects that all replicas share and that outlive every process: the list of blocks, and what is kept
 * beside it. A name has characters of `A-Z a-z 0-9 _ -`; the empty name is that of the list. Reads see every write that
 * has ended before. All throw an `Error` if the place fails.
 */
export interface SharedObjects {
  /** Reads an object, or a part of one, which is empty beyond the end; returns `undefined` if the object is missing. */
  read(name: string, part?: ObjectPart): Promise<SharedObject | undefined>;
  /**
   * Writes an object, completely or not at all. Of concurrent writes under the same condition one succeeds; those with
   * equal bytes may all succeed. If the place fails, the object may have been written all the same.
   *
   * @returns the tag of the new version; `undefined` if the condition does not hold
   */
  write(name: string, body: ObjectBody, condition: WriteCondition): Promise<string | undefined>;
  /** Returns the names that begin with a text, in no particular order, without the empty name. */
  list(prefix: string): Promise<readonly string[]>;
  /** Removes an object, which may be missing. */
  remove(name: string): Promise<void>;
}

/** Time after which nothing that was begun before a start is still being written, in milliseconds. */
export const LEFT_BEHIND_AFTER_MS = 300_000;

const PROBE = 'probe-';

/**
 * Removes the probes that are there now and after five minutes: their processes were killed.
 *
 * @throws Error if the place cannot be listed
 */
export async function removeLeftProbes(objects: SharedObjects): Promise<void> {
  const left = await objects.list(PROBE);
  if (left.length === 0) return;
  const remove = () => Promise.allSettled(left.map((name) => objects.remove(name)));
  setTimeout(() => void remove(), LEFT_BEHIND_AFTER_MS).unref();
}

/**
 * Checks that a place can be written, and that its conditions hold: some S3 servers accept conditional writes and
 * ignore the condition, and two replicas would overwrite each other's blocks.
 *
 * @throws Error with the reason
 */
export async function probeConditions(objects: SharedObjects): Promise<void> {
  const name = PROBE + randomBytes(8).toString('hex');
  const version = (text: string): Buffer => Buffer.from(`${text} ${name}\n`);
  try {
    const first = await objects.write(name, version('first'), 'absent');
    if (first === undefined) throw new Error('A new object cannot be written: it seems to exist.');
    if ((await objects.write(name, version('other'), 'absent')) !== undefined) {
      throw new Error('The server ignores If-None-Match: it replaces an object that exists.');
    }
    const second = await objects.write(name, version('second'), { tag: first });
    if (second === undefined) throw new Error('The server denies a write whose If-Match holds.');
    if ((await objects.write(name, version('third'), { tag: first })) !== undefined) {
      throw new Error('The server ignores If-Match: it replaces a newer version.');
    }
    const found = await objects.read(name);
    if (found === undefined || !version('second').equals(found.bytes)) {
      throw new Error('The server returns another version than the one that was written last.');
    }
    if (!(await objects.list(name)).includes(name)) {
      throw new Error('The server does not list an object that was just written.');
    }
  } finally {
    await objects.remove(name);
  }
}
