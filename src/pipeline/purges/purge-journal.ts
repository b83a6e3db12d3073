import { randomBytes } from 'node:crypto';
import type { SharedObjects } from '../blocks/ports.ts';
import type { Clock, Log } from '../ports.ts';

/** A purge of the edge. Times are milliseconds since 1970: they outlive the process. */
export interface EdgePurge {
  readonly id: string;
  status: 'pending' | 'done' | 'failed';
  readonly askedAtMs: number;
  /** Tags, until the purge ends. */
  tags: readonly string[];
  /** The edge gets all tags twice; see `EdgePurger`. */
  round: 1 | 2;
  dueAtMs: number;
  /** Tags that the edge has not taken in this round. */
  left: Set<string>;
  /** Time when the edge last took a tag of this purge, or when the purge ended. */
  changedAtMs: number;
  reason: string | undefined;
}

type Purges = ReadonlyMap<string, EdgePurge>;

/** First line of a journal, by which other processes judge it. */
interface Header {
  readonly owner: string;
  /** Number of the write, so that no two versions have the same bytes. */
  readonly beat: number;
  /**
   * Time from which others may take over, in milliseconds since 1970: at once, when the owner has stopped; when nothing
   * is pending, after all ends are told. `null`: when the owner ceases to write.
   */
  readonly freeFromMs: number | null;
}

/** A purge in the second line of a journal; tags are joined, since long lists of texts take long to format. */
type Row = Omit<EdgePurge, 'tags' | 'left'> & Record<'tags' | 'left', string>;

const PREFIX = 'purges-';

/** Time after which a journal that does not change has lost its owner, in milliseconds: three beats. */
const OWNER_LOST_AFTER_MS = 15_000;

/** Time for which the end of a purge is told, a day, and the most that are. */
const TOLD_FOR_MS = 24 * 3_600_000;
const MAX_ENDED = 1_000;

export interface JournalParts {
  readonly objects: SharedObjects;
  readonly clock: Clock;
  readonly wallClock: () => number;
  readonly log: Log;
}

/**
 * Journal of a process beside the list of blocks: one object, which the process replaces on the condition that nobody
 * else has. A process that finds the journal of another one unchanged for some seconds, by its own clock, claims the
 * journal under the same condition, and takes the purges over into its own.
 *
 * A process that was only slow loses its journal by that, and begins a new one with all that it has: then the edge gets
 * tags more often than needed, and no tag is lost. Reads and writes throw what `SharedObjects` throws.
 */
export class PurgeJournal {
  readonly purges = new Map<string, EdgePurge>();
  readonly #parts: JournalParts;
  #owner = newOwner();
  #tag: string | undefined;
  #beat = 0;
  #isReleased = false;
  #current: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  /** Versions of the journals of others, and since when, by our clock. */
  readonly #seen = new Map<string, { readonly tag: string; readonly sinceMs: number }>();

  constructor(parts: JournalParts) {
    this.#parts = parts;
  }

  /** Writes the purges as they are now; calls during a write share the next one. */
  save(): Promise<void> {
    this.#next ??= this.#current
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        this.#current = this.#write();
        return this.#current;
      });
    return this.#next;
  }

  get pending(): EdgePurge[] {
    return listPending(this.purges);
  }

  /** Leaves what is pending to the next process that looks, at the end of this one. */
  async release(): Promise<void> {
    this.#isReleased = true;
    if (this.pending.length > 0) await this.save();
  }

  /**
   * Takes over the purges of processes that are gone.
   *
   * @returns how many of them are pending
   */
  async takeOver(): Promise<number> {
    const { objects, clock, wallClock } = this.#parts;
    const names = (await objects.list(PREFIX)).filter((name) => name !== this.#name);
    for (const name of this.#seen.keys()) if (!names.includes(name)) this.#seen.delete(name);
    let count = 0;
    for (const name of names) {
      const found = await objects.read(name);
      if (found === undefined) continue;
      const seen = this.#seen.get(name);
      const nowMs = clock.nowMs();
      if (seen?.tag !== found.tag) this.#seen.set(name, { tag: found.tag, sinceMs: nowMs });
      const isUnchanged = seen?.tag === found.tag && nowMs - seen.sinceMs >= OWNER_LOST_AFTER_MS;
      const header = parseLine<Header>(found.bytes, 0);
      if (header === undefined) continue;
      // Of what has ended nothing changes any more, so such a journal has no beat, and its owner may live.
      const isFree = header.freeFromMs === null ? isUnchanged : header.freeFromMs < wallClock();
      if (isFree) count += await this.#adopt(name, found.tag);
    }
    return count;
  }

  /** Reads the purges of the other processes. */
  async readOthers(): Promise<readonly Purges[]> {
    const { objects } = this.#parts;
    const names = (await objects.list(PREFIX)).filter((name) => name !== this.#name);
    const found = await Promise.all(names.map((name) => objects.read(name)));
    return found.flatMap((it) => (it === undefined ? [] : [parsePurges(it.bytes)]));
  }

  get #name(): string {
    return PREFIX + this.#owner;
  }

  async #adopt(name: string, tag: string): Promise<number> {
    const { objects, log } = this.#parts;
    const found = await objects.read(name);
    if (found?.tag !== tag) return 0;
    const theirs = parsePurges(found.bytes);
    if ((await objects.write(name, this.#format(theirs), { tag })) === undefined) return 0;
    for (const purge of theirs.values()) {
      const known = this.purges.get(purge.id);
      const hasEnded = known?.status === 'pending' && purge.status !== 'pending';
      if (known === undefined || hasEnded) this.purges.set(purge.id, purge);
    }
    // A process that ends before this leaves the claim, which another one takes over in turn.
    await this.save();
    await objects.remove(name);
    const count = listPending(theirs).length;
    if (count > 0) log.info({ purges: count }, 'purges of a process that is gone are taken over');
    return count;
  }

  async #write(): Promise<void> {
    const { objects } = this.#parts;
    this.#forgetEnded();
    if (this.purges.size === 0) {
      if (this.#tag !== undefined) await objects.remove(this.#name);
      this.#tag = undefined;
      return;
    }
    const body = this.#format(this.purges);
    const condition = this.#tag === undefined ? 'absent' : { tag: this.#tag };
    this.#tag = await objects.write(this.#name, body, condition);
    if (this.#tag !== undefined) return;
    // Another process has taken the journal over, or an earlier write has succeeded without a response.
    this.#owner = newOwner();
    await this.#write();
  }

  #format(purges: Purges): Buffer {
    this.#beat += 1;
    const all = [...purges.values()];
    const isPending = listPending(purges).length > 0;
    const changedAtMs = all.reduce((latestMs, purge) => Math.max(latestMs, purge.changedAtMs), 0);
    const heldMs = this.#isReleased ? 0 : null;
    const freeFromMs = isPending ? heldMs : changedAtMs + TOLD_FOR_MS;
    const header: Header = { owner: this.#owner, beat: this.#beat, freeFromMs };
    const rows = all.map(
      (purge): Row => ({ ...purge, tags: purge.tags.join(' '), left: [...purge.left].join(' ') }),
    );
    return Buffer.from(`${JSON.stringify(header)}\n${JSON.stringify(rows)}\n`);
  }

  #forgetEnded(): void {
    const untilMs = this.#parts.wallClock() - TOLD_FOR_MS;
    let ended = this.purges.size - this.pending.length;
    for (const [id, { status, changedAtMs }] of this.purges) {
      if (status === 'pending' || (ended <= MAX_ENDED && changedAtMs >= untilMs)) continue;
      this.purges.delete(id);
      ended -= 1;
    }
  }
}

function listPending(purges: Purges): EdgePurge[] {
  return [...purges.values()].filter(({ status }) => status === 'pending');
}

function newOwner(): string {
  return randomBytes(8).toString('hex');
}

/** Parses a line of a journal; returns `undefined` if the journal is damaged, which hinders no other. */
function parseLine<Line>(bytes: Uint8Array, index: number): Line | undefined {
  const lines = Buffer.from(bytes)
    .toString('utf8')
    .split('\n', index + 1);
  try {
    return JSON.parse(lines[index] ?? '');
  } catch {
    return undefined;
  }
}

function parsePurges(bytes: Uint8Array): Purges {
  const rows = parseLine<readonly Row[]>(bytes, 1) ?? [];
  return new Map(
    rows.map(({ tags, left, ...purge }) => [
      purge.id,
      { ...purge, tags: tags.split(' '), left: new Set(left.split(' ')) },
    ]),
  );
}
