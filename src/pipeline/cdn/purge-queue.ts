import type { SharedObjects } from '../blocks/ports.ts';
import type { Tools } from '../meter.ts';
import { type CdnPurge, formatPurge, parseEarlierJournal, parsePurge } from './cdn-purge.ts';

interface Entry {
  readonly purge: CdnPurge;
  /** Tag of the last version read or written. */
  tag: string;
  isOwn: boolean;
  isChanged: boolean;
  writing: Promise<void>;
}

const PREFIX = 'purge-';

/** Prefix of journals of earlier releases. */
const EARLIER_PREFIX = 'purges-';

/** Length of a lease, in milliseconds; it grows with the number of purges to limit renewals to 250 a second. */
const LEASE_MS = 20_000;
const LEASE_PER_PURGE_MS = 10;

/** Remaining fraction of a lease at which it is renewed. */
const RENEWAL_FRACTION = 0.6;

const OUTCOME_RETENTION_MS = 24 * 3_600_000;
const MAX_OUTCOMES = 1_000;

/** Maximum number of leases that `freeLeases` ends; the others expire. */
const MAX_FREED_LEASES = 1_000;

const PARALLEL = 8;

/**
 * Purges of all processes, each in its own object next to the list of blocks. The process with the lease of a purge
 * sends it: first the one that received the request; after the lease expires, the one whose conditional write succeeds.
 * If clocks disagree, purges are taken over early, and the CDN receives tags more often than needed.
 */
export class PurgeQueue {
  readonly #objects: SharedObjects;
  readonly #tools: Pick<Tools, 'wallClock' | 'log'>;
  readonly #entries = new Map<string, Entry>();
  /** Sequential batches of urgent writes. */
  #storing: Promise<void> = Promise.resolve();
  #leaseMs = LEASE_MS;
  #areLeasesFreed = false;

  constructor(objects: SharedObjects, tools: Pick<Tools, 'wallClock' | 'log'>) {
    this.#objects = objects;
    this.#tools = tools;
  }

  get pending(): CdnPurge[] {
    return this.#own.map(({ purge }) => purge).filter(({ status }) => status === 'pending');
  }

  get #own(): Entry[] {
    return [...this.#entries.values()].filter(({ isOwn }) => isOwn);
  }

  /** Stores and leases a new purge. @throws Error of the storage; the purge is then not sent */
  async add(purge: CdnPurge): Promise<void> {
    purge.leaseUntilMs = this.#leaseEndOf(purge);
    const tag = await this.#replace(purge, 'absent');
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
    const ids = idsOf(await this.#objects.list(PREFIX));
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

  /** Marks purges as changed; stores urgent ones immediately, others within seconds. */
  noteChanges(purges: readonly CdnPurge[], isUrgent: (purge: CdnPurge) => boolean): void {
    const urgent: Entry[] = [];
    for (const purge of purges) {
      const entry = this.#entries.get(purge.id);
      if (entry?.purge !== purge) continue; // another process has the lease
      entry.isChanged = true;
      if (isUrgent(purge)) urgent.push(entry);
    }
    const store = (entry: Entry): Promise<void> =>
      this.#write(entry).catch((err: unknown) => {
        this.#tools.log.warn({ err }, 'the state of a purge could not be stored; retrying');
      });
    this.#storing = this.#storing.then(() => inParallel(urgent, store));
  }

  /**
   * Renews leases, removes old outcomes, and returns whether it took over expired leases. @throws Error of the storage
   */
  async sync(): Promise<boolean> {
    const { wallClock, log } = this.#tools;
    this.#leaseMs = LEASE_MS + LEASE_PER_PURGE_MS * this.#own.length;
    const renewBeforeMs = wallClock() + RENEWAL_FRACTION * this.#leaseMs;
    const isDue = ({ isChanged, purge }: Entry) => isChanged || purge.leaseUntilMs < renewBeforeMs;
    await inParallel(this.#own.filter(isDue), (entry) => this.#write(entry));
    const names = await this.#objects.list('purge');
    for (const name of names) if (name.startsWith(EARLIER_PREFIX)) await this.#convert(name);
    const ids = idsOf(names);
    let takeovers = 0;
    await inParallel(ids, async (id) => {
      const known = this.#entries.get(id);
      if (known !== undefined && !this.#isClaimable(known)) return;
      const found = await this.#load(id);
      const entry = found && this.#remember(found.purge, found.tag);
      if (entry === undefined || !this.#isClaimable(entry)) return;
      await this.#write(entry);
      if (entry.isOwn) takeovers += 1;
    });
    if (takeovers > 0) log.info({ purges: takeovers }, 'took over purges whose lease had expired');
    await this.#removeOutcomes(new Set(ids));
    return takeovers > 0;
  }

  /** Ends the leases, so that another process continues immediately. @throws Error of the storage */
  async freeLeases(): Promise<void> {
    this.#areLeasesFreed = true;
    await this.#storing;
    await inParallel(this.#own.slice(0, MAX_FREED_LEASES), (entry) => this.#write(entry));
  }

  async #load(id: string): Promise<Pick<Entry, 'purge' | 'tag'> | undefined> {
    const found = await this.#objects.read(PREFIX + id);
    const purge = found && parsePurge(found.bytes);
    return purge && { purge, tag: found.tag };
  }

  #remember(purge: CdnPurge, tag: string): Entry {
    const known = this.#entries.get(purge.id);
    if (known?.isOwn) return known;
    const entry: Entry = { purge, tag, isOwn: false, isChanged: false, writing: Promise.resolve() };
    this.#entries.set(purge.id, entry);
    return entry;
  }

  #isClaimable({ isOwn, purge }: Entry): boolean {
    const isExpired = purge.leaseUntilMs < this.#tools.wallClock();
    return !isOwn && purge.status === 'pending' && isExpired;
  }

  /** Stores a purge after earlier writes of it, with a lease while it is pending. */
  #write(entry: Entry): Promise<void> {
    const { purge } = entry;
    entry.writing = entry.writing
      .catch(() => undefined)
      .then(async () => {
        purge.leaseUntilMs = this.#leaseEndOf(purge);
        entry.isChanged = false;
        const tag = await this.#replace(purge, { tag: entry.tag }).catch((error: unknown) => {
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

  /**
   * Writes a purge; returns its tag, or `undefined` if another process replaced it. After a failed condition, the
   * object may be our own write: the S3 client repeats a request whose response was lost, which returns a 412.
   */
  async #replace(
    purge: CdnPurge,
    condition: Parameters<SharedObjects['write']>[2],
  ): Promise<string | undefined> {
    const name = PREFIX + purge.id;
    const bytes = formatPurge(purge);
    const tag = await this.#objects.write(name, bytes, condition);
    if (tag !== undefined) return tag;
    const found = await this.#objects.read(name);
    return found !== undefined && bytes.equals(found.bytes) ? found.tag : undefined;
  }

  /** Replaces a journal of an earlier release by one object without a lease for each purge. */
  async #convert(name: string): Promise<void> {
    const found = await this.#objects.read(name);
    const purges = found && parseEarlierJournal(found.bytes);
    if (found === undefined || purges === undefined) return;
    await inParallel(purges, (purge) =>
      this.#objects.write(PREFIX + purge.id, formatPurge(purge), 'absent'),
    );
    // Meanwhile, a running process of that release may have added a purge.
    const emptied = await this.#objects.write(name, Buffer.from('{}\n[]\n'), { tag: found.tag });
    if (emptied !== undefined) await this.#objects.remove(name);
  }

  async #removeOutcomes(listed: ReadonlySet<string>): Promise<void> {
    const oldestMs = this.#tools.wallClock() - OUTCOME_RETENTION_MS;
    const others = [...this.#entries.values()].filter(({ isOwn }) => !isOwn);
    for (const { purge } of others) if (!listed.has(purge.id)) this.#entries.delete(purge.id);
    const expired = others
      .map(({ purge }) => purge)
      .filter(({ status }) => status !== 'pending')
      .sort((one, other) => other.changedAtMs - one.changedAtMs)
      .filter(({ changedAtMs }, index) => index >= MAX_OUTCOMES || changedAtMs < oldestMs);
    await inParallel(expired, async ({ id }) => {
      await this.#objects.remove(PREFIX + id);
      this.#entries.delete(id);
    });
  }

  /**
   * Returns the end of a lease; between rounds, when the second one is due. The random fraction distinguishes
   * concurrent takeovers.
   */
  #leaseEndOf({ status, dueAtMs }: CdnPurge): number {
    if (status !== 'pending' || this.#areLeasesFreed) return 0;
    return Math.max(this.#tools.wallClock() + this.#leaseMs, dueAtMs) + Math.random();
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
