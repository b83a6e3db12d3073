import type { SharedObjects } from '../blocks/ports.ts';
import type { Log } from '../ports.ts';
import { type CdnPurge, formatPurge, parseEarlierJournal, parsePurge } from './cdn-purge.ts';

/** A purge as this process knows it. */
interface Entry {
  readonly purge: CdnPurge;
  /** Tag of the version that was read or written last. */
  tag: string;
  /** Whether this process has the lease. */
  isOwn: boolean;
  /** Whether a change is not stored yet. */
  isChanged: boolean;
  writing: Promise<void>;
}

export interface PurgeQueueOptions {
  readonly objects: SharedObjects;
  readonly wallClock: () => number;
  readonly log: Log;
}

const PREFIX = 'purge-';

/** Prefix of the journals of earlier releases. */
const EARLIER_PREFIX = 'purges-';

/** Length of a lease, in milliseconds; it grows with the number of purges, so that renewals are at most 250 a second. */
const LEASE_MS = 20_000;
const LEASE_PER_PURGE_MS = 10;

/** Part of a lease that is left when it is renewed. */
const RENEWED_AT = 0.6;

/** Time for which the outcome of a purge is kept, a day, and the maximum number of outcomes. */
const OUTCOME_KEPT_MS = 24 * 3_600_000;
const MAX_OUTCOMES = 1_000;

/** Maximum number of leases that end at a stop; the others expire. */
const MAX_RELEASED = 1_000;

/** Objects that are read or written at once. */
const PARALLEL = 8;

/**
 * Purges of all processes, each in an object of its own next to the list of blocks. Who has the lease of a purge sends it:
 * at first the process that received the request, and after the lease has expired the process whose conditional write is
 * first. If clocks disagree, purges are taken over early, and the CDN receives tags more often than needed.
 */
export class PurgeQueue {
  readonly #options: PurgeQueueOptions;
  readonly #entries = new Map<string, Entry>();
  #leaseMs = LEASE_MS;
  #isReleased = false;

  constructor(options: PurgeQueueOptions) {
    this.#options = options;
  }

  /** Pending purges that this process sends. */
  get pending(): CdnPurge[] {
    return this.#own.map(({ purge }) => purge).filter(({ status }) => status === 'pending');
  }

  get #own(): Entry[] {
    return [...this.#entries.values()].filter(({ isOwn }) => isOwn);
  }

  /** Stores a new purge with a lease. @throws Error of the storage; then the purge is not sent */
  async add(purge: CdnPurge): Promise<void> {
    purge.leaseUntilMs = this.#leaseEndOf(purge);
    const tag = await this.#options.objects.write(PREFIX + purge.id, formatPurge(purge), 'absent');
    if (tag === undefined) throw new Error('A purge with this id exists already.');
    this.#remember(purge, tag).isOwn = true;
  }

  /** Finds a purge of any process. @throws Error of the storage */
  async find(id: string): Promise<CdnPurge | undefined> {
    const known = this.#entries.get(id);
    if (known?.isOwn) return known.purge;
    return /^[\da-f-]{36}$/.test(id) ? (await this.#load(id))?.purge : undefined;
  }

  /** Lists the pending purges of all processes. @throws Error of the storage */
  async listPending(): Promise<readonly CdnPurge[]> {
    const { pending } = this;
    const ids = idsOf(await this.#options.objects.list(PREFIX));
    const others = ids.filter((id) => {
      const known = this.#entries.get(id);
      return known === undefined || (!known.isOwn && known.purge.status === 'pending');
    });
    await inParallel(others, async (id) => {
      const purge = (await this.#load(id))?.purge;
      if (purge?.status === 'pending') pending.push(purge);
    });
    return pending;
  }

  /** Notes a change of a purge, which is stored now, or with `isUrgent: false` within seconds. */
  noteChange(purge: CdnPurge, { isUrgent }: { readonly isUrgent: boolean }): void {
    const entry = this.#entries.get(purge.id);
    if (entry?.purge !== purge) return; // another process has the lease
    entry.isChanged = true;
    if (!isUrgent) return;
    this.#write(entry).catch((err: unknown) => {
      this.#options.log.warn({ err }, 'the state of a purge could not be stored; retrying');
    });
  }

  /**
   * Renews leases, takes over purges whose lease has expired, and removes old outcomes.
   *
   * @returns whether this process has taken over a purge
   * @throws Error of the storage
   */
  async sync(): Promise<boolean> {
    const { objects, wallClock, log } = this.#options;
    this.#leaseMs = LEASE_MS + LEASE_PER_PURGE_MS * this.#own.length;
    const renewBeforeMs = wallClock() + RENEWED_AT * this.#leaseMs;
    const isDue = ({ isChanged, purge }: Entry) => isChanged || purge.leaseUntilMs < renewBeforeMs;
    await inParallel(this.#own.filter(isDue), (entry) => this.#write(entry));
    const names = await objects.list('purge');
    for (const name of names) if (name.startsWith(EARLIER_PREFIX)) await this.#convert(name);
    const ids = idsOf(names);
    let taken = 0;
    await inParallel(ids, async (id) => {
      const known = this.#entries.get(id);
      if (known !== undefined && !this.#isFree(known)) return;
      const found = await this.#load(id);
      const entry = found && this.#remember(found.purge, found.tag);
      if (entry === undefined || !this.#isFree(entry)) return;
      await this.#write(entry);
      if (entry.isOwn) taken += 1;
    });
    if (taken > 0) log.info({ purges: taken }, 'took over purges whose lease had expired');
    await this.#removeOutcomes(new Set(ids));
    return taken > 0;
  }

  /** Ends the leases, so that another process continues at once. @throws Error of the storage */
  async release(): Promise<void> {
    this.#isReleased = true;
    await inParallel(this.#own.slice(0, MAX_RELEASED), (entry) => this.#write(entry));
  }

  async #load(id: string): Promise<Pick<Entry, 'purge' | 'tag'> | undefined> {
    const found = await this.#options.objects.read(PREFIX + id);
    const purge = found && parsePurge(found.bytes);
    return purge && { purge, tag: found.tag };
  }

  #remember(purge: CdnPurge, tag: string): Entry {
    const known = this.#entries.get(purge.id);
    if (known?.isOwn) return known;
    const state = { isOwn: false, isChanged: false, writing: Promise.resolve() };
    const entry = { purge, tag, ...state };
    this.#entries.set(purge.id, entry);
    return entry;
  }

  #isFree({ isOwn, purge }: Entry): boolean {
    const isExpired = purge.leaseUntilMs < this.#options.wallClock();
    return !isOwn && purge.status === 'pending' && isExpired;
  }

  /** Stores a purge, after earlier writes of it, with a lease; without one when it has ended. */
  #write(entry: Entry): Promise<void> {
    const { purge } = entry;
    entry.writing = entry.writing
      .catch(() => undefined)
      .then(async () => {
        purge.leaseUntilMs = this.#leaseEndOf(purge);
        entry.isChanged = false;
        const condition = { tag: entry.tag };
        const tag = await this.#options.objects
          .write(PREFIX + purge.id, formatPurge(purge), condition)
          .catch((error: unknown) => {
            entry.isChanged = true;
            throw error;
          });
        entry.tag = tag ?? '';
        entry.isOwn = tag !== undefined && (purge.status === 'pending' || entry.isChanged);
        // Another process has the lease.
        if (tag === undefined && this.#entries.get(purge.id) === entry) {
          this.#entries.delete(purge.id);
        }
      });
    return entry.writing;
  }

  /** Replaces a journal of an earlier release by an object for each of its purges, without a lease. */
  async #convert(name: string): Promise<void> {
    const { objects } = this.#options;
    const found = await objects.read(name);
    const purges = found && parseEarlierJournal(found.bytes);
    if (found === undefined || purges === undefined) return;
    await inParallel(purges, (purge) =>
      objects.write(PREFIX + purge.id, formatPurge(purge), 'absent'),
    );
    // A process of that release that is still running may have added a purge meanwhile.
    const emptied = await objects.write(name, Buffer.from('{}\n[]\n'), { tag: found.tag });
    if (emptied !== undefined) await objects.remove(name);
  }

  async #removeOutcomes(listed: ReadonlySet<string>): Promise<void> {
    const oldestMs = this.#options.wallClock() - OUTCOME_KEPT_MS;
    const others = [...this.#entries.values()].filter(({ isOwn }) => !isOwn);
    for (const { purge } of others) if (!listed.has(purge.id)) this.#entries.delete(purge.id);
    const expired = others
      .map(({ purge }) => purge)
      .filter(({ status }) => status !== 'pending')
      .sort((one, other) => other.changedAtMs - one.changedAtMs)
      .filter(({ changedAtMs }, index) => index >= MAX_OUTCOMES || changedAtMs < oldestMs);
    await inParallel(expired, async ({ id }) => {
      await this.#options.objects.remove(PREFIX + id);
      this.#entries.delete(id);
    });
  }

  /** A purge between its rounds is leased until the second one is due, without renewals. */
  #leaseEndOf({ status, dueAtMs }: CdnPurge): number {
    if (status !== 'pending' || this.#isReleased) return 0;
    return Math.max(this.#options.wallClock() + this.#leaseMs, dueAtMs);
  }
}

function idsOf(names: readonly string[]): string[] {
  return names.filter((name) => name.startsWith(PREFIX)).map((name) => name.slice(PREFIX.length));
}

async function inParallel<Item>(
  items: readonly Item[],
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  const queue = items.values();
  const run = async (): Promise<void> => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: PARALLEL }, run));
}
