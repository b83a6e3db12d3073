import { randomBytes } from 'node:crypto';

export interface SharedObject {
  readonly bytes: Uint8Array;
  /** Tag of exactly these bytes. */
  readonly tag: string;
}

export type WriteCondition = 'absent' | { readonly tag: string };

/** Maximum size of an object, in bytes (contract §15). */
export const MAX_OBJECT_BYTES = 16 * 1024 * 1024;

/**
 * Small named objects that replicas share and that outlive processes: the list of blocks (with an empty name) and CDN
 * purges. Names consist of `A-Z a-z 0-9 _ -`. Reads see every completed write. Methods throw an `Error` if the storage
 * fails.
 */
export interface SharedObjects {
  /** @throws Error also if the object exceeds `MAX_OBJECT_BYTES` */
  read(name: string): Promise<SharedObject | undefined>;
  /** Returns the tag of the current version without reading its bytes. */
  findTag(name: string): Promise<string | undefined>;
  /**
   * Writes an object atomically. Of concurrent writes under the same condition one succeeds, except that equal bytes
   * may all succeed. If the storage fails, the object may have been written.
   *
   * @returns the tag of the new version; `undefined` if the condition is not met
   */
  write(name: string, bytes: Uint8Array, condition: WriteCondition): Promise<string | undefined>;
  /** Returns the non-empty names with a prefix, in no particular order. */
  list(prefix: string): Promise<readonly string[]>;
  /** Removes an object, if it exists. */
  remove(name: string): Promise<void>;
}

const PROBE = 'probe-';

/** Maximum duration of a probe, in milliseconds; older probes belong to killed processes. */
const PROBE_OVER_AFTER_MS = 60_000;

/** Removes existing probes after a minute, when their processes must have been killed. @throws Error if listing fails */
export async function removeAbandonedProbes(objects: SharedObjects): Promise<void> {
  const left = await objects.list(PROBE);
  if (left.length === 0) return;
  const remove = () => Promise.allSettled(left.map((name) => objects.remove(name)));
  setTimeout(() => void remove(), PROBE_OVER_AFTER_MS).unref();
}

/**
 * Checks that the storage is writable and honours conditions. Some S3 servers ignore them, and two replicas would then
 * overwrite each other's blocks. @throws Error with the reason
 */
export async function probeConditions(objects: SharedObjects): Promise<void> {
  const name = PROBE + randomBytes(8).toString('hex');
  const version = (text: string): Buffer => Buffer.from(`${text} ${name}\n`);
  try {
    const first = await objects.write(name, version('first'), 'absent');
    if (first === undefined) throw new Error('The server rejects a new object as existing.');
    if ((await objects.write(name, version('other'), 'absent')) !== undefined) {
      throw new Error('The server ignores If-None-Match: it replaces an existing object.');
    }
    const second = await objects.write(name, version('second'), { tag: first });
    if (second === undefined)
      throw new Error('The server rejects a write with a matching If-Match.');
    if ((await objects.write(name, version('third'), { tag: first })) !== undefined) {
      throw new Error('The server ignores If-Match: it replaces a newer version.');
    }
    const found = await objects.read(name);
    if (found === undefined || !version('second').equals(found.bytes)) {
      throw new Error('The server returns another version than the last one written.');
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
