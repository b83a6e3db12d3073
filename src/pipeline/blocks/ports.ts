import { randomBytes } from 'node:crypto';

export interface SharedObject {
  readonly bytes: Uint8Array;
  /** Tag of this version of the object: a version with other bytes has another one. */
  readonly tag: string;
}

/** Condition of a write: the object is missing, or has this version. */
export type WriteCondition = 'absent' | { readonly tag: string };

/** Maximum size of an object, in bytes (contract §15). */
export const MAX_OBJECT_BYTES = 16 * 1024 * 1024;

/**
 * Small named objects that all replicas share and that outlive every process: the list of blocks, and the purges next to
 * it. A name has characters of `A-Z a-z 0-9 _ -`; the empty name is that of the list. Reads see every write that has ended
 * before. All methods throw an `Error` if the storage fails.
 */
export interface SharedObjects {
  /** Returns `undefined` if the object is missing. @throws Error if it exceeds `MAX_OBJECT_BYTES` */
  read(name: string): Promise<SharedObject | undefined>;
  /** Returns the tag of the current version without reading its bytes; `undefined` if the object is missing. */
  findTag(name: string): Promise<string | undefined>;
  /**
   * Writes an object, completely or not at all. Of concurrent writes under the same condition one succeeds; those with
   * equal bytes may all succeed. If the storage fails, the object may have been written all the same.
   *
   * @returns the tag of the new version; `undefined` if the condition does not hold
   */
  write(name: string, bytes: Uint8Array, condition: WriteCondition): Promise<string | undefined>;
  /** Returns the names that begin with a text, in no particular order, without the empty name. */
  list(prefix: string): Promise<readonly string[]>;
  /** Removes an object, which may be missing. */
  remove(name: string): Promise<void>;
}

const PROBE = 'probe-';

/** Maximum duration of a probe, in milliseconds; a longer one belongs to a killed process. */
const PROBE_OVER_AFTER_MS = 60_000;

/**
 * Removes the probes that exist now, in a minute: the processes that still have one were killed.
 *
 * @throws Error if the storage cannot be listed
 */
export async function removeAbandonedProbes(objects: SharedObjects): Promise<void> {
  const left = await objects.list(PROBE);
  if (left.length === 0) return;
  const remove = () => Promise.allSettled(left.map((name) => objects.remove(name)));
  setTimeout(() => void remove(), PROBE_OVER_AFTER_MS).unref();
}

/**
 * Checks that the storage can be written, and that its conditions hold: some S3 servers accept conditional writes and
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
    if ((await objects.findTag(name)) !== found.tag) {
      throw new Error('The server returns different tags for the same version.');
    }
    if (!(await objects.list(name)).includes(name)) {
      throw new Error('The server does not list an object that was just written.');
    }
  } finally {
    await objects.remove(name);
  }
}
