import { randomBytes } from 'node:crypto';
import type { SharedObjects } from '../blocks/ports.ts';
import type { Clock, Log } from '../ports.ts';

/** A purge on its way to the edge. Times are milliseconds since 1970: they outlive the process. */
export interface PendingPurge {
  readonly id: string;
  readonly askedAtMs: number;
  readonly tags: readonly string[];
  /** The edge gets all tags twice; see `EdgePurger`. */
  round: 1 | 2;
  /** Start of the round. */
  dueAtMs: number;
  /** Tags that the edge has not taken in this round. */
  readonly left: Set<string>;
  /** Time when the edge last took a tag of this purge. */
  takenAtMs: number;
  /** Last reason why the edge took nothing. */
  reason: string | undefined;
}

/** A purge that has ended. */
export interface EndedPurge {
  readonly id: string;
  readonly endedAtMs: number;
  readonly status: 'done' | 'failed';
  readonly reason: string | undefined;
}

/** Purges of one process. */
export interface Purges {
  readonly pending: Map<string, PendingPurge>;
  readonly ended: Map<string, EndedPurge>;
}

/** First line of a journal, by which other processes judge it. */
interface Header {
  /** Process that writes the journal. */
  readonly owner: string;
  /** Number of the write, so that no two versions have the same bytes. */
  readonly beat: number;
  /** Whether the owner has stopped: another process may take over at once. */
  readonly isReleased: boolean;
  readonly hasPending: boolean;
  /** Time until which something of the journal is told, in milliseconds since 1970. */
  readonly toldUntilMs: number;
}

/** Second line of a journal; tags are joined by spaces, since long lists of texts take long to format. */
interface Body {
  readonly pending: readonly (Omit<PendingPurge, 'tags' | 'left'> &
    Record<'tags' | 'left', string>)[];
  readonly ended: readonly EndedPurge[];
}

/** Beginning of the names of journals. */
const PREFIX = 'purges-';

/** Time after which a journal that does not change has lost its owner, in milliseconds: three beats. */
const OWNER_LOST_AFTER_MS = 15_000;

/** Room for the first line, in bytes. */
const HEADER_BYTES = 512;

/** Time for which the end of a purge is told, a day, and the most that are. */
const TOLD_FOR_MS = 24 * 3_600_000;
const MAX_ENDED = 1_000;

/** Parts of a journal. */
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
 * tags more often than needed, and no tag is lost.
 */
export class PurgeJournal {
  readonly purges: Purges = { pending: new Map(), ended: new Map() };
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

  /**
   * Writes the purges as they are now; calls during a write share the next one.
   *
   * @throws Error if the place of the list fails
   */
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

  /** Leaves what is pending to the next process that looks, at the end of this one. */
  async release(): Promise<void> {
    this.#isReleased = true;
    if (this.purges.pending.size > 0) await this.save();
  }

  /**
   * Takes over the purges of processes that are gone.
   *
   * @returns how many of them are pending
   * @throws Error if the place of the list fails
   */
  async takeOver(): Promise<number> {
    const { objects, clock, wallClock } = this.#parts;
    const names = (await objects.list(PREFIX)).filter((name) => name !== this.#name);
    for (const name of this.#seen.keys()) if (!names.includes(name)) this.#seen.delete(name);
    let count = 0;
    for (const name of names) {
      const found = await objects.read(name, { first: 0, lengthBytes: HEADER_BYTES });
      if (found === undefined) continue;
      const seen = this.#seen.get(name);
      const nowMs = clock.nowMs();
      if (seen?.tag !== found.tag) this.#seen.set(name, { tag: found.tag, sinceMs: nowMs });
      const isLost = seen?.tag === found.tag && nowMs - seen.sinceMs >= OWNER_LOST_AFTER_MS;
      const header = parseLine<Header>(found.bytes, 0);
      if (header === undefined) continue;
      const { hasPending, isReleased, toldUntilMs } = header;
      // Of what has ended nothing changes any more, so such a journal has no beat, and its owner may live.
      const isWaiting = hasPending && (isLost || isReleased);
      const isOver = !hasPending && toldUntilMs < wallClock();
      if (isWaiting || isOver) count += await this.#adopt(name, found.tag);
    }
    return count;
  }

  /**
   * Reads the purges of the other processes.
   *
   * @throws Error if the place of the list fails
   */
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
    const { pending, ended } = parsePurges(found.bytes);
    const claim = format(this.#headerOf({ pending, ended }), { pending, ended });
    if ((await objects.write(name, claim, { tag })) === undefined) return 0;
    const { purges } = this;
    for (const [id, purge] of ended) if (!purges.ended.has(id)) purges.ended.set(id, purge);
    for (const [id, purge] of pending) {
      if (!purges.ended.has(id) && !purges.pending.has(id)) purges.pending.set(id, purge);
    }
    // A process that ends before this leaves the claim, which another one takes over in turn.
    await this.save();
    await objects.remove(name);
    if (pending.size > 0) {
      log.info({ purges: pending.size }, 'purges of a process that is gone are taken over');
    }
    return pending.size;
  }

  async #write(): Promise<void> {
    const { objects } = this.#parts;
    this.#forgetEnded();
    const { pending, ended } = this.purges;
    if (pending.size === 0 && ended.size === 0) {
      if (this.#tag !== undefined) await objects.remove(this.#name);
      this.#tag = undefined;
      return;
    }
    const body = format(this.#headerOf(this.purges), this.purges);
    const condition = this.#tag === undefined ? 'absent' : { tag: this.#tag };
    this.#tag = await objects.write(this.#name, body, condition);
    if (this.#tag !== undefined) return;
    // Another process has taken the journal over, or an earlier write has succeeded without a response.
    this.#owner = newOwner();
    await this.#write();
  }

  #headerOf({ pending, ended }: Purges): Header {
    this.#beat += 1;
    const times = [...ended.values()].map(({ endedAtMs }) => endedAtMs);
    return {
      owner: this.#owner,
      beat: this.#beat,
      isReleased: this.#isReleased,
      hasPending: pending.size > 0,
      toldUntilMs: Math.max(0, ...times) + TOLD_FOR_MS,
    };
  }

  #forgetEnded(): void {
    const { ended } = this.purges;
    const untilMs = this.#parts.wallClock() - TOLD_FOR_MS;
    for (const [id, purge] of ended) {
      if (ended.size > MAX_ENDED || purge.endedAtMs < untilMs) ended.delete(id);
    }
  }
}

function newOwner(): string {
  return randomBytes(8).toString('hex');
}

function format(header: Header, { pending, ended }: Purges): Buffer {
  const body: Body = {
    pending: [...pending.values()].map(({ tags, left, ...purge }) => ({
      ...purge,
      tags: tags.join(' '),
      left: [...left].join(' '),
    })),
    ended: [...ended.values()],
  };
  return Buffer.from(`${JSON.stringify(header)}\n${JSON.stringify(body)}\n`);
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
  const { pending, ended } = parseLine<Body>(bytes, 1) ?? { pending: [], ended: [] };
  return {
    pending: new Map(
      pending.map((purge) => [
        purge.id,
        { ...purge, tags: purge.tags.split(' '), left: new Set(purge.left.split(' ')) },
      ]),
    ),
    ended: new Map(ended.map((purge) => [purge.id, purge])),
  };
}
