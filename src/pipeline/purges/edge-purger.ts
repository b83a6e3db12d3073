import { createHash, randomUUID } from 'node:crypto';
import type { EdgeRow, EdgeTags } from '../../contract/edge-tags.ts';
import { MediaError } from '../../contract/errors.ts';
import type { PurgeOrder } from '../../contract/purge-order.ts';
import type { Meter } from '../meter.ts';
import { CallPace } from './call-pace.ts';
import { type EdgeApi, EdgeFailure } from './edge-api.ts';
import {
  type EndedPurge,
  type JournalParts,
  type PendingPurge,
  PurgeJournal,
} from './purge-journal.ts';

/** A purge as operators see it. */
export interface PurgeState {
  readonly id: string;
  readonly status: 'pending' | 'done' | 'failed';
  /** Reason of the edge, if it has refused a call. */
  readonly reason?: string;
}

/** Waits; ends early when the signal aborts, without an error. */
export type Sleep = (durationMs: number, signal: AbortSignal) => Promise<void>;

/** Parts of the purger. */
export interface EdgePurgerParts extends JournalParts {
  readonly api: EdgeApi;
  readonly row: EdgeRow;
  readonly tags: EdgeTags;
  readonly sleep: Sleep;
  readonly meter: Meter;
  /** Time after which no response from before a purge is under way to the edge any more, in milliseconds. */
  readonly secondRoundAfterMs: number;
}

/** Interval in which the journal is written and the journals of others are looked at, in milliseconds. */
const BEAT_MS = 5_000;

/** Longest sleep of the sender, in milliseconds: the wall clock may be set. */
const LONGEST_SLEEP_MS = 60_000;

/** Time without any progress after which a purge has failed, in milliseconds (contract §15). */
const GIVEN_UP_AFTER_MS = 24 * 3_600_000;

/** Most tags that wait for the edge: 2 MB of a journal that is written every five seconds. */
const MAX_PENDING_TAGS = 100_000;

/** Interval between two log lines on a failing edge, in milliseconds. */
const LOG_INTERVAL_MS = 60_000;

/**
 * Passes purges on to the CDN in front (contract §15), by tags, when Darkroom's own stores are purged. Each purge is
 * journaled first, and reaches the edge twice: at once, and again when no response that was begun before the purge can
 * reach the edge any more.
 *
 * One call is under way at a time. Each call has as many tags as it may have, of all purges whose round is due: those of
 * first rounds before others, and those of small purges before those of large ones, so that a single takedown does not
 * wait for a large cleaning. A tag that several purges wait for is sent once.
 */
export class EdgePurger {
  readonly #parts: EdgePurgerParts;
  readonly #journal: PurgeJournal;
  readonly #closing = new AbortController();
  readonly #pace: CallPace;
  #loggedAtMs = Number.NEGATIVE_INFINITY;
  #wake: () => void = () => undefined;
  #running: Promise<unknown> = Promise.resolve();

  constructor(parts: EdgePurgerParts) {
    this.#parts = parts;
    this.#journal = new PurgeJournal(parts);
    this.#pace = new CallPace(parts.row.pace, parts.clock);
  }

  /** Begins to send, and to take over purges of processes that are gone. */
  start(): void {
    this.#running = Promise.all([this.#sendAll(), this.#beat()]);
  }

  /**
   * Accepts a purge, after Darkroom's own stores are purged; resolves when it is journaled.
   *
   * @returns the id of the purge
   * @throws MediaError `OVERLOADED` if too much waits for the edge; Error if the journal cannot be written
   */
  async purge(order: PurgeOrder): Promise<string> {
    const { pending } = this.#journal.purges;
    const tags = this.#parts.tags.ofOrder(order);
    let waiting = tags.length;
    for (const purge of pending.values()) waiting += purge.tags.length;
    if (waiting > MAX_PENDING_TAGS) throw new MediaError('OVERLOADED', { retryAfterSeconds: 60 });
    const id = randomUUID();
    const nowMs = this.#parts.wallClock();
    const times = { askedAtMs: nowMs, dueAtMs: nowMs, takenAtMs: nowMs };
    const purge = { id, tags, round: 1, left: new Set(tags), ...times, reason: undefined } as const;
    pending.set(id, purge);
    try {
      await this.#journal.save();
    } catch (error) {
      pending.delete(id);
      throw error;
    }
    this.#wake();
    return id;
  }

  /**
   * Finds a purge of any process.
   *
   * @throws Error if the journals cannot be read
   */
  async find(id: string): Promise<PurgeState | undefined> {
    const own = this.#journal.purges;
    const isOwn = own.ended.has(id) || own.pending.has(id);
    const all = isOwn ? [own] : await this.#journal.readOthers();
    const ended = all.map((purges) => purges.ended.get(id)).find((it) => it !== undefined);
    const purge = ended ?? all.map((it) => it.pending.get(id)).find((it) => it !== undefined);
    return purge && stateOf(purge);
  }

  /**
   * Lists the pending purges of all processes, the oldest first.
   *
   * @throws Error if the journals cannot be read
   */
  async list(): Promise<readonly (PurgeState & { readonly pendingSeconds: number })[]> {
    const all = [this.#journal.purges, ...(await this.#journal.readOthers())];
    const purges = new Map(all.flatMap(({ pending }) => [...pending]));
    for (const { ended } of all) for (const id of ended.keys()) purges.delete(id);
    const nowMs = this.#parts.wallClock();
    return [...purges.values()]
      .sort((one, other) => one.askedAtMs - other.askedAtMs)
      .map((purge) => ({
        ...stateOf(purge),
        pendingSeconds: Math.max(0, Math.floor((nowMs - purge.askedAtMs) / 1000)),
      }));
  }

  /** Pending purges of this process, and the age of the oldest one. */
  get usage(): { readonly pending: number; readonly oldestSeconds: number } {
    const { pending } = this.#journal.purges;
    let oldestMs = 0;
    const nowMs = this.#parts.wallClock();
    for (const purge of pending.values()) oldestMs = Math.max(oldestMs, nowMs - purge.askedAtMs);
    return { pending: pending.size, oldestSeconds: oldestMs / 1000 };
  }

  /** Stops, and leaves what is pending to another process, or to the next one. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#wake();
    await this.#running;
    await this.#journal.release().catch((error: unknown) => this.#warnOfJournal(error));
  }

  /** Sends until the purger is closed. */
  async #sendAll(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      const waitMs = this.#waitMs();
      if (waitMs > 0) await this.#wait(waitMs);
      else await this.#sendNext();
    }
  }

  /** Returns how long to wait for the next call, in milliseconds. */
  #waitMs(): number {
    let dueAtMs = Number.POSITIVE_INFINITY;
    for (const purge of this.#journal.purges.pending.values()) {
      dueAtMs = Math.min(dueAtMs, purge.dueAtMs);
    }
    const waitMs = Math.max(dueAtMs - this.#parts.wallClock(), this.#pace.waitMs);
    return Math.min(waitMs, LONGEST_SLEEP_MS);
  }

  async #sendNext(): Promise<void> {
    const { api, row, meter } = this.#parts;
    this.#giveUp();
    const due = this.#listDue();
    const tags = new Set<string>();
    for (const tag of tagsLeftIn(due)) {
      if (tags.size === row.tagsPerCall) break;
      tags.add(tag);
    }
    if (tags.size === 0) return;
    const concerned = due.filter(({ left }) => haveCommon(left, tags));
    this.#pace.begin();
    const reference = referenceOf(concerned, tags);
    try {
      await api.purge([...tags], reference, this.#closing.signal);
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#fail(concerned, error);
      return;
    }
    meter.count('edgeCalls', 'taken');
    this.#pace.succeed();
    for (const purge of concerned) this.#take(purge, tags);
  }

  /** Lists the purges of which the edge should get tags now, the most urgent first. */
  #listDue(): PendingPurge[] {
    const nowMs = this.#parts.wallClock();
    return [...this.#journal.purges.pending.values()]
      .filter((purge) => purge.dueAtMs <= nowMs)
      .sort((one, other) => one.round - other.round || one.left.size - other.left.size);
  }

  #take(purge: PendingPurge, tags: ReadonlySet<string>): void {
    const { wallClock, secondRoundAfterMs } = this.#parts;
    const nowMs = wallClock();
    for (const tag of tags) purge.left.delete(tag);
    purge.takenAtMs = nowMs;
    if (purge.left.size > 0) return;
    if (purge.round === 2) {
      this.#end(purge, 'done');
      return;
    }
    purge.round = 2;
    purge.dueAtMs = nowMs + secondRoundAfterMs;
    for (const tag of purge.tags) purge.left.add(tag);
  }

  #fail(purges: readonly PendingPurge[], error: unknown): void {
    const { api, clock, meter, log } = this.#parts;
    const isKnown = error instanceof EdgeFailure;
    const reason = error instanceof Error ? error.message : String(error);
    meter.count('edgeCalls', isKnown ? error.outcome : 'failed');
    for (const purge of purges) purge.reason = reason;
    this.#pace.fail(isKnown ? error.retryAfterMs : undefined);
    const nowMs = clock.nowMs();
    if (nowMs - this.#loggedAtMs < LOG_INTERVAL_MS) return;
    this.#loggedAtMs = nowMs;
    const pending = this.#journal.purges.pending.size;
    log.warn(
      { edge: api.name, reason, pending },
      'the edge has not taken a purge; it gets it again',
    );
  }

  /** Ends purges of which the edge has taken nothing for a day. */
  #giveUp(): void {
    const untilMs = this.#parts.wallClock() - GIVEN_UP_AFTER_MS;
    for (const purge of this.#journal.purges.pending.values()) {
      if (purge.takenAtMs > untilMs || purge.reason === undefined) continue;
      this.#end(purge, 'failed');
      const { id, reason, left } = purge;
      const details = { edge: this.#parts.api.name, id, reason, tags: left.size };
      this.#parts.log.error(
        details,
        'a purge has not reached the edge, which may serve what is purged',
      );
    }
  }

  #end(purge: PendingPurge, status: 'done' | 'failed'): void {
    const { pending, ended } = this.#journal.purges;
    pending.delete(purge.id);
    const { id } = purge;
    const reason = status === 'failed' ? purge.reason : undefined;
    ended.set(id, { id, status, reason, endedAtMs: this.#parts.wallClock() });
    this.#parts.meter.count('edgePurges', status);
    // What waits for the journal is the next beat, and nobody.
    if (pending.size === 0) {
      void this.#journal.save().catch((error: unknown) => this.#warnOfJournal(error));
    }
  }

  /** Writes the journal as long as something is pending, and looks at those of others. */
  async #beat(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        if (this.#journal.purges.pending.size > 0) await this.#journal.save();
        if ((await this.#journal.takeOver()) > 0) this.#wake();
      } catch (error) {
        this.#warnOfJournal(error);
      }
      await this.#parts.sleep(BEAT_MS, signal);
    }
  }

  async #wait(durationMs: number): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await this.#parts.sleep(durationMs, woken.signal);
  }

  #warnOfJournal(error: unknown): void {
    this.#parts.log.warn({ err: error }, 'the journal of purges cannot be read or written');
  }
}

function stateOf(purge: PendingPurge | EndedPurge): PurgeState {
  const { id, reason } = purge;
  const status = 'status' in purge ? purge.status : 'pending';
  return { id, status, ...(reason !== undefined && { reason }) };
}

function* tagsLeftIn(purges: readonly PendingPurge[]): Generator<string> {
  for (const { left } of purges) yield* left;
}

function haveCommon(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  const [small, large] = one.size < other.size ? [one, other] : [other, one];
  for (const tag of small) if (large.has(tag)) return true;
  return false;
}

/** Returns the same text for the same tags of the same rounds, and another one for all others. */
function referenceOf(purges: readonly PendingPurge[], tags: ReadonlySet<string>): string {
  const rounds = purges.map(({ id, round }) => `${id} ${round}`);
  const hash = createHash('sha256').update([...rounds, ...tags].join('\n'));
  return hash.digest('hex').slice(0, 32);
}
