import { createHash, randomUUID } from 'node:crypto';
import type { EdgeRow, EdgeTags } from '../../contract/edge-tags.ts';
import { MediaError } from '../../contract/errors.ts';
import type { PurgeOrder } from '../../contract/purge-order.ts';
import type { Meter } from '../meter.ts';
import { CallPace } from './call-pace.ts';
import { type EdgeApi, EdgeFailure } from './edge-api.ts';
import { type EdgePurge, type JournalParts, PurgeJournal } from './purge-journal.ts';

/** A purge as operators see it; with the reason of the edge, if it has refused a call. */
type PurgeState = Pick<EdgePurge, 'id' | 'status'> & Partial<Pick<EdgePurge, 'reason'>>;

/** Waits; ends early when the signal aborts, without an error. */
export type Sleep = (durationMs: number, signal: AbortSignal) => Promise<void>;

export interface EdgePurgerParts extends JournalParts {
  readonly api: EdgeApi;
  readonly row: EdgeRow;
  readonly tags: EdgeTags;
  readonly sleep: Sleep;
  readonly meter: Pick<Meter, 'count'>;
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

const LOG_INTERVAL_MS = 60_000;

/**
 * Passes purges on to the CDN in front (contract §15), by tags, when Darkroom's own stores are purged. Each purge is
 * journaled first, and reaches the edge twice: at once, and again when no response that was begun before the purge can
 * reach the edge any more.
 *
 * One call is under way at a time. Each call has as many tags as it may have, of all purges whose round is due: those of
 * small purges before those of large ones in both rounds, so that a single takedown does not wait for a large cleaning,
 * and those of first rounds before others of that size. A tag that several purges wait for is sent once.
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

  start(): void {
    this.#running = Promise.all([
      this.#runLoop(() => this.#sendAll()),
      this.#runLoop(() => this.#beat()),
    ]);
  }

  /**
   * Accepts a purge, after Darkroom's own stores are purged; resolves when it is journaled.
   *
   * @returns the id of the purge
   * @throws MediaError `OVERLOADED` if too much waits for the edge; Error if the journal cannot be written
   */
  async purge(order: PurgeOrder): Promise<string> {
    const { purges, pending } = this.#journal;
    const tags = this.#parts.tags.ofOrder(order);
    const waiting = pending.reduce((sum, purge) => sum + purge.tags.length, tags.length);
    if (waiting > MAX_PENDING_TAGS) throw new MediaError('OVERLOADED', { retryAfterSeconds: 60 });
    const id = randomUUID();
    const nowMs = this.#parts.wallClock();
    const times = { askedAtMs: nowMs, dueAtMs: nowMs, changedAtMs: nowMs };
    const state = { status: 'pending', round: 1, reason: undefined } as const;
    purges.set(id, { id, ...state, ...times, tags, left: new Set(tags) });
    try {
      await this.#journal.save();
    } catch (error) {
      purges.delete(id);
      throw error;
    }
    this.#wake();
    return id;
  }

  /** Finds a purge of any process. @throws Error if the journals cannot be read */
  async find(id: string): Promise<PurgeState | undefined> {
    const own = this.#journal.purges.get(id);
    const purge = own ?? (await this.#readAll()).get(id);
    return purge && stateOf(purge);
  }

  /** Lists the pending purges of all processes, the oldest first. @throws as `find` */
  async list(): Promise<readonly (PurgeState & { readonly pendingSeconds: number })[]> {
    const nowMs = this.#parts.wallClock();
    return [...(await this.#readAll()).values()]
      .filter(({ status }) => status === 'pending')
      .sort((one, other) => one.askedAtMs - other.askedAtMs)
      .map((purge) => ({
        ...stateOf(purge),
        pendingSeconds: Math.max(0, Math.floor((nowMs - purge.askedAtMs) / 1000)),
      }));
  }

  /** Reads the purges of all processes; during a takeover two have the same one, which may have ended in one of them. */
  async #readAll(): Promise<ReadonlyMap<string, EdgePurge>> {
    const all = [this.#journal.purges, ...(await this.#journal.readOthers())];
    const purges = all.flatMap((each) => [...each.values()]);
    const ended = purges.filter(({ status }) => status !== 'pending');
    return new Map([...purges, ...ended].map((purge) => [purge.id, purge]));
  }

  /** Pending purges of this process, and the age of the oldest one. */
  get usage(): { readonly pending: number; readonly oldestSeconds: number } {
    const { pending } = this.#journal;
    const nowMs = this.#parts.wallClock();
    const askedAtMs = pending.reduce((oldest, purge) => Math.min(oldest, purge.askedAtMs), nowMs);
    return { pending: pending.length, oldestSeconds: (nowMs - askedAtMs) / 1000 };
  }

  /** Stops, and leaves what is pending to another process, or to the next one. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#wake();
    await this.#running;
    await this.#journal.release().catch((error: unknown) => this.#warnOfJournal(error));
  }

  /** Runs a loop until the stop; restarts it after an error, which would end the process as an unhandled rejection. */
  async #runLoop(loop: () => Promise<void>): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        await loop();
      } catch (error) {
        this.#parts.log.error({ err: error }, 'sending purges to the CDN failed; retrying');
        await this.#parts.sleep(BEAT_MS, signal);
      }
    }
  }

  async #sendAll(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      const waitMs = this.#waitMs();
      if (waitMs > 0) await this.#wait(waitMs);
      else await this.#sendNext();
    }
  }

  #waitMs(): number {
    const dueAtMs = this.#journal.pending.reduce(
      (nextMs, purge) => Math.min(nextMs, purge.dueAtMs),
      Number.POSITIVE_INFINITY,
    );
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
    const concerned = due.filter(({ left }) => [...tags].some((tag) => left.has(tag)));
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
  #listDue(): EdgePurge[] {
    const nowMs = this.#parts.wallClock();
    return this.#journal.pending
      .filter((purge) => purge.dueAtMs <= nowMs)
      .sort((one, other) => one.tags.length - other.tags.length || one.round - other.round);
  }

  #take(purge: EdgePurge, tags: ReadonlySet<string>): void {
    const { wallClock, secondRoundAfterMs } = this.#parts;
    const nowMs = wallClock();
    for (const tag of tags) purge.left.delete(tag);
    purge.changedAtMs = nowMs;
    if (purge.left.size > 0) return;
    if (purge.round === 2) {
      this.#end(purge, 'done');
      return;
    }
    purge.round = 2;
    purge.dueAtMs = nowMs + secondRoundAfterMs;
    purge.left = new Set(purge.tags);
  }

  #fail(purges: readonly EdgePurge[], error: unknown): void {
    const { api, clock, meter, log } = this.#parts;
    const isKnown = error instanceof EdgeFailure;
    const reason = error instanceof Error ? error.message : String(error);
    meter.count('edgeCalls', isKnown ? error.outcome : 'failed');
    for (const purge of purges) purge.reason = reason;
    this.#pace.fail(isKnown ? error.retryAfterMs : undefined);
    const nowMs = clock.nowMs();
    if (nowMs - this.#loggedAtMs < LOG_INTERVAL_MS) return;
    this.#loggedAtMs = nowMs;
    const pending = this.#journal.pending.length;
    log.warn(
      { edge: api.name, reason, pending },
      'the CDN has not accepted a purge; it is sent again',
    );
  }

  #giveUp(): void {
    const untilMs = this.#parts.wallClock() - GIVEN_UP_AFTER_MS;
    for (const purge of this.#journal.pending) {
      if (purge.changedAtMs > untilMs || purge.reason === undefined) continue;
      const { id, reason, left } = purge;
      const details = { edge: this.#parts.api.name, id, reason, tags: left.size };
      this.#end(purge, 'failed');
      this.#parts.log.error(
        details,
        'the CDN has not accepted a purge, and may serve what was purged',
      );
    }
  }

  #end(purge: EdgePurge, status: 'done' | 'failed'): void {
    const reason = status === 'failed' ? purge.reason : undefined;
    const changedAtMs = this.#parts.wallClock();
    Object.assign(purge, { status, reason, changedAtMs, tags: [], left: new Set<string>() });
    this.#parts.meter.count('edgePurges', status);
    // What waits for the journal is the next beat, and nobody.
    if (this.#journal.pending.length === 0) {
      void this.#journal.save().catch((error: unknown) => this.#warnOfJournal(error));
    }
  }

  /** Writes the journal as long as something is pending, and looks at those of others. */
  async #beat(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        if (this.#journal.pending.length > 0) await this.#journal.save();
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

function stateOf({ id, status, reason }: EdgePurge): PurgeState {
  return { id, status, ...(reason !== undefined && { reason }) };
}

function* tagsLeftIn(purges: readonly EdgePurge[]): Generator<string> {
  for (const { left } of purges) yield* left;
}

/** Returns the same text for the same tags of the same rounds, and another one for all others. */
function referenceOf(purges: readonly EdgePurge[], tags: ReadonlySet<string>): string {
  const rounds = purges.map(({ id, round }) => `${id} ${round}`);
  const hash = createHash('sha256').update([...rounds, ...tags].join('\n'));
  return hash.digest('hex').slice(0, 32);
}
