import { createHash, randomUUID } from 'node:crypto';
import type { CdnRow, CdnTags } from '../../contract/cdn-tags.ts';
import { MediaError } from '../../contract/errors.ts';
import type { PurgeRequest } from '../../contract/purge-request.ts';
import type { Tools } from '../meter.ts';
import { CallPace } from './call-pace.ts';
import { type CdnApi, CdnFailure } from './cdn-api.ts';
import { acceptTags, type CdnPurge, endPurge, type PurgeState, stateOf } from './cdn-purge.ts';
import type { PurgeQueue } from './purge-queue.ts';

export type Sleep = (durationMs: number, signal: AbortSignal) => Promise<void>;

export interface Cdn {
  readonly api: CdnApi;
  readonly row: CdnRow;
  readonly tags: CdnTags;
  /** Time after which no response from before a purge can reach the CDN, in milliseconds. */
  readonly secondRoundAfterMs: number;
}

/** Interval of lease renewals and takeovers, in milliseconds. */
const SYNC_INTERVAL_MS = 5_000;

/** Maximum sleep of the sender, in milliseconds, since the wall clock may jump. */
const MAX_SLEEP_MS = 60_000;

/** Time without progress after which a purge fails, in milliseconds (contract §15). */
const FAILED_AFTER_MS = 24 * 3_600_000;

/** Maximum number of pending tags in this process. */
const MAX_PENDING_TAGS = 100_000;

const LOG_INTERVAL_MS = 60_000;

/**
 * Sends purges to the CDN, by tags (contract §15). Each purge is stored first, and sent twice: immediately, and when no
 * response from before the purge can reach the CDN any more.
 *
 * One call runs at a time, with as many tags as the API accepts. Small purges precede large ones, so that a takedown
 * does not wait for a bulk purge; among equal sizes, first rounds precede second ones.
 */
export class CdnPurger {
  readonly #cdn: Cdn;
  readonly #queue: PurgeQueue;
  readonly #sleep: Sleep;
  readonly #tools: Tools;
  readonly #closing = new AbortController();
  readonly #pace: CallPace;
  #loggedAtMs = Number.NEGATIVE_INFINITY;
  #wake: () => void = () => undefined;
  #running: Promise<unknown> = Promise.resolve();

  constructor(cdn: Cdn, queue: PurgeQueue, sleep: Sleep, tools: Tools) {
    this.#cdn = cdn;
    this.#queue = queue;
    this.#sleep = sleep;
    this.#tools = tools;
    this.#pace = new CallPace(cdn.row.pace, tools.clock);
  }

  start(): void {
    this.#running = Promise.all([
      this.#runLoop(() => this.#sendAll()),
      this.#runLoop(() => this.#syncAll()),
    ]);
  }

  /**
   * Stores a purge, and returns its id.
   *
   * @throws MediaError `OVERLOADED` if too many tags are pending; Error if the purge cannot be stored
   */
  async purge(request: PurgeRequest): Promise<string> {
    const tags = this.#cdn.tags.ofPurge(request);
    const { pending } = this.#queue;
    const waiting = pending.reduce((sum, purge) => sum + purge.tags.length, tags.length);
    if (waiting > MAX_PENDING_TAGS) throw new MediaError('OVERLOADED', { retryAfterSeconds: 60 });
    const id = randomUUID();
    const nowMs = this.#tools.wallClock();
    const times = { requestedAtMs: nowMs, dueAtMs: nowMs, changedAtMs: nowMs, leaseUntilMs: 0 };
    await this.#queue.add({ id, status: 'pending', round: 1, ...times, tags, left: new Set(tags) });
    this.#wake();
    return id;
  }

  /** Finds a purge of any process. @throws Error if it cannot be read */
  async find(id: string): Promise<PurgeState | undefined> {
    const purge = await this.#queue.find(id);
    return purge && stateOf(purge);
  }

  /** Lists the pending purges of all processes, oldest first. @throws as `find` */
  async list(): Promise<readonly (PurgeState & { readonly pendingSeconds: number })[]> {
    const nowMs = this.#tools.wallClock();
    return [...(await this.#queue.listPending())]
      .sort((one, other) => one.requestedAtMs - other.requestedAtMs)
      .map((purge) => ({
        ...stateOf(purge),
        pendingSeconds: Math.max(0, Math.floor((nowMs - purge.requestedAtMs) / 1000)),
      }));
  }

  get usage(): { readonly pending: number; readonly oldestSeconds: number } {
    const { pending } = this.#queue;
    const nowMs = this.#tools.wallClock();
    const oldestMs = pending.reduce((oldest, it) => Math.min(oldest, it.requestedAtMs), nowMs);
    return { pending: pending.length, oldestSeconds: (nowMs - oldestMs) / 1000 };
  }

  /** Stops, and frees the leases for other processes. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#wake();
    await this.#running;
    await this.#queue.freeLeases().catch((error: unknown) => this.#warn(error));
  }

  /** Runs a loop until `close`; restarts it after an error, which would otherwise end the process. */
  async #runLoop(loop: () => Promise<void>): Promise<void> {
    const { signal } = this.#closing;
    for (let hasFailed = false; !signal.aborted; ) {
      try {
        if (hasFailed) await this.#sleep(SYNC_INTERVAL_MS, signal);
        hasFailed = false;
        await loop();
      } catch (error) {
        this.#tools.log.error({ err: error }, 'sending purges to the CDN failed; retrying');
        hasFailed = true;
      }
    }
  }

  async #syncAll(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        if (await this.#queue.sync()) this.#wake();
      } catch (error) {
        this.#warn(error);
      }
      await this.#sleep(SYNC_INTERVAL_MS, signal);
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
    const dueAtMs = this.#queue.pending.reduce(
      (nextMs, purge) => Math.min(nextMs, purge.dueAtMs),
      Number.POSITIVE_INFINITY,
    );
    const waitMs = Math.max(dueAtMs - this.#tools.wallClock(), this.#pace.waitMs);
    return Math.min(waitMs, MAX_SLEEP_MS);
  }

  async #sendNext(): Promise<void> {
    const { api, row } = this.#cdn;
    this.#failOld();
    const due = this.#listDue();
    const tags = new Set<string>();
    for (const tag of tagsLeftIn(due)) {
      if (tags.size === row.tagsPerCall) break;
      tags.add(tag);
    }
    if (tags.size === 0) return;
    const affected = due.filter(({ left }) => [...tags].some((tag) => left.has(tag)));
    this.#pace.begin();
    const reference = referenceOf(affected, tags);
    try {
      await api.purge([...tags], reference, this.#closing.signal);
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#fail(affected, error);
      return;
    }
    this.#tools.meter.count('cdnCalls', 'taken');
    this.#pace.succeed();
    this.#accept(affected, tags);
  }

  /** Lists the due purges, most urgent first. */
  #listDue(): CdnPurge[] {
    const nowMs = this.#tools.wallClock();
    return this.#queue.pending
      .filter((purge) => purge.dueAtMs <= nowMs)
      .sort((one, other) => one.tags.length - other.tags.length || one.round - other.round);
  }

  #accept(purges: readonly CdnPurge[], tags: ReadonlySet<string>): void {
    const { wallClock, meter } = this.#tools;
    const { secondRoundAfterMs } = this.#cdn;
    const ended = new Set<CdnPurge>();
    for (const purge of purges) {
      if (acceptTags(purge, tags, wallClock(), secondRoundAfterMs)) ended.add(purge);
      if (purge.status === 'done') meter.count('cdnPurges', 'done');
    }
    this.#queue.noteChanges(purges, (purge) => ended.has(purge));
  }

  #fail(purges: readonly CdnPurge[], error: unknown): void {
    const { clock, meter, log } = this.#tools;
    const edge = this.#cdn.api.name;
    const isKnown = error instanceof CdnFailure;
    const reason = error instanceof Error ? error.message : String(error);
    meter.count('cdnCalls', isKnown ? error.outcome : 'failed');
    for (const purge of purges) purge.reason = reason;
    this.#queue.noteChanges(purges, () => false);
    this.#pace.fail(isKnown ? error.retryAfterMs : undefined);
    const nowMs = clock.nowMs();
    if (nowMs - this.#loggedAtMs < LOG_INTERVAL_MS) return;
    this.#loggedAtMs = nowMs;
    const pending = this.#queue.pending.length;
    log.warn({ edge, reason, pending }, 'the CDN did not accept a purge; retrying');
  }

  #failOld(): void {
    const { wallClock, meter, log } = this.#tools;
    for (const purge of this.#queue.pending) {
      const { id, reason, left, changedAtMs } = purge;
      if (changedAtMs > wallClock() - FAILED_AFTER_MS || reason === undefined) continue;
      log.error(
        { edge: this.#cdn.api.name, id, reason, tags: left.size },
        'the CDN did not accept a purge for a day; it may serve purged media',
      );
      endPurge(purge, 'failed', wallClock());
      meter.count('cdnPurges', 'failed');
      this.#queue.noteChanges([purge], () => true);
    }
  }

  async #wait(durationMs: number): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await this.#sleep(durationMs, woken.signal);
  }

  #warn(error: unknown): void {
    this.#tools.log.warn({ err: error }, 'purges for the CDN cannot be read or written');
  }
}

function* tagsLeftIn(purges: readonly CdnPurge[]): Generator<string> {
  for (const { left } of purges) yield* left;
}

/** Returns a text that is unique to these tags in these rounds. */
function referenceOf(purges: readonly CdnPurge[], tags: ReadonlySet<string>): string {
  const rounds = purges.map(({ id, round }) => `${id} ${round}`);
  const hash = createHash('sha256').update([...rounds, ...tags].join('\n'));
  return hash.digest('hex').slice(0, 32);
}
