import { type Expected, type Refused, respond } from './expected-response.ts';

/** The periods of the contract, in milliseconds, written down once more: nothing here is read from the service. */
export const periods = {
  /** How long what the storage has said of an original is relied on (CACHE_REVALIDATE_SECONDS). */
  fresh: 300_000,
  /** The same of another site that says nothing, or says this (contract §8). */
  siteLeast: 3_600_000,
  siteLonger: 7_200_000,
  missing: 30_000,
  /** An origin that has failed for an original is left alone: with nothing to serve instead, and with an older result. */
  failedWithout: 2_000,
  failedWith: 5_000,
  siteFailed: 60_000,
  staleIfError: 86_400_000,
  /** 415 and 422; a request whose render was late; costlier renders of its original, and three lost workers. */
  refused: 300_000,
  late: 60_000,
  original: 600_000,
  storeFailed: 5_000,
} as const;

/** How many workers an original may cost. */
export const MAX_LOST_WORKERS = 3;

/** How a service is started. */
export interface Setup {
  readonly hasStore: boolean;
  readonly keepsResults: boolean;
  readonly keepsOriginals: boolean;
  /** Whether the origin gives small originals at once, as a directory does; or else as a stream, as S3 does. */
  readonly givesBytes: boolean;
  /** How long what it says is relied on. */
  readonly freshForMs: number;
}

/** One state of an original: the storage's tag of it, and the number of the picture; 0 is a text. */
export interface Version {
  readonly tag: number;
  readonly picture: number;
}

export const originScripts = ['responds', 'fails', 'hangs', 'cuts', 'is full'] as const;
export const renderScripts = [
  ...(['succeeds', 'refuses', 'costs a worker'] as const),
  ...(['is late', 'is busy'] as const),
] as const;
export type StoreScript = 'works' | 'fails' | 'hangs';

/** Where an original is. */
export const places = ['asset', 'attachment', 'site'] as const;
export type Place = (typeof places)[number];

/** What an original is at present, and what becomes of those who want it. */
export interface Truth {
  readonly place: Place;
  /** All that it ever was; the last is what it is. */
  readonly versions: Version[];
  isThere: boolean;
  origin: (typeof originScripts)[number];
  render: (typeof renderScripts)[number];
  /** What its site says. */
  freshForMs: number;
}

/** What may be asked of each original; `respelled` is another URL of `small`. */
export const variants = ['small', 'respelled', 'large', 'png', 'untouched'] as const;
export type Variant = (typeof variants)[number];

/** How it is asked for: conditions name the present version, the one before, or anything. */
export const manners = ['get', 'head', 'has it', 'had it', 'has any', 'dated', 'range'] as const;
export type Manner = (typeof manners)[number];

export interface ModelRequest {
  readonly original: number;
  readonly variant: Variant;
  readonly as: Manner;
}

/** Work that was done; of another site a peek is a conditional request. */
export type Work = ReturnType<typeof noWork>;
export const noWork = () => ({
  ...{ wholes: 0, peeks: 0, renders: 0 },
  ...{ storeReads: 0, storeWrites: 0 },
});

/** What the service may remember of one original. */
export interface Memory {
  /** What the origin has said last, without a version: that there is none. */
  said:
    | { readonly version?: Version; readonly atMs: number; readonly freshForMs: number }
    | undefined;
  failure: { readonly status: 502 | 504; readonly atMs: number } | undefined;
  bytes: Version | undefined;
  readonly results: Map<string, Version>;
  readonly refusals: Map<string, { readonly status: Refused; readonly untilMs: number }>;
  /** The workers that it has cost. */
  lost: { readonly count: number; readonly untilMs: number };
  /** The cheapest render that was late, by its `costOf`. */
  late: { readonly cost: number; readonly untilMs: number };
  /** What is in the result store, by request and tag. */
  readonly stored: Set<string>;
}

const emptyMemory = (stored = new Set<string>()): Memory => ({
  ...{ said: undefined, failure: undefined, bytes: undefined },
  ...{ results: new Map(), refusals: new Map() },
  ...{ lost: { count: 0, untilMs: 0 }, late: { cost: 0, untilMs: 0 }, stored },
});

/** Requests for these have one cache key. */
export const nameOf = (variant: Variant): string => (variant === 'respelled' ? 'small' : variant);

/** The rank of what renders cost: a PNG is encoded faster than a WebP of its size. */
export const costOf = (variant: Variant): number =>
  ['png', 'small', 'large'].indexOf(nameOf(variant));

/**
 * Says what a service must respond, and by which work, from what it was asked before: the contract on caching, a second
 * time. It knows what can be seen from outside, the storage's side included, and nothing of how the service is made.
 */
export class CacheModel {
  nowMs = 0;
  store: StoreScript = 'works';
  readonly setup: Setup;
  readonly truths: readonly Truth[];
  #memories: Memory[];
  #storeFailedUntilMs = 0;
  readonly #ends = new Set<number>();
  /** Entity tags that were seen, by what they must be a function of. */
  readonly tags = new Map<string, string>();

  constructor(setup: Setup, truths: readonly Truth[]) {
    this.setup = setup;
    this.truths = truths;
    this.#memories = truths.map(() => emptyMemory());
  }

  truth(original: number): Truth {
    const truth = this.truths[original];
    if (truth === undefined) throw new Error(`there is no original ${original}`);
    return truth;
  }

  #memory(original: number): Memory {
    const memory = this.#memories[original];
    if (memory === undefined) throw new Error(`there is no original ${original}`);
    return memory;
  }

  /** The same state, for a look at what would be. */
  clone(): CacheModel {
    const copy = new CacheModel(this.setup, this.truths);
    copy.nowMs = this.nowMs;
    copy.store = this.store;
    copy.#storeFailedUntilMs = this.#storeFailedUntilMs;
    for (const [key, tag] of this.tags) copy.tags.set(key, tag);
    copy.#memories = structuredClone(this.#memories);
    return copy;
  }

  /** The next moments at which something of what is remembered ends. */
  get deadlines(): readonly number[] {
    const future = [...this.#ends].filter((ms) => ms > this.nowMs + 1);
    return future.sort((a, b) => a - b);
  }

  /** Notes that something ends, so that walks go to that moment. */
  end(...afterMs: readonly number[]): void {
    for (const ms of afterMs) this.#ends.add(this.nowMs + ms);
  }

  /** What the origin has, as far as it was asked lately enough to rely on that. */
  freshVersion(original: number): Version | undefined {
    const { said } = this.#memory(original);
    return said && this.nowMs - said.atMs < said.freshForMs ? said.version : undefined;
  }

  /** Forgets an original, or one rendering of it, and all that else is known of the original. */
  purge(original: number, variant?: Variant): { readonly memory: number; readonly store: number } {
    const memory = this.#memory(original);
    const { results, stored } = memory;
    const fits = (key: string): boolean =>
      variant === undefined || key.split(' ')[0] === nameOf(variant);
    const kept = [...results].filter(([key]) => !fits(key));
    const gone = [...stored].filter(fits);
    const isStoreWorking = this.setup.hasStore && this.store === 'works';
    if (isStoreWorking) for (const key of gone) stored.delete(key);
    this.#memories[original] = { ...emptyMemory(stored), results: new Map(kept) };
    return { memory: results.size - kept.length, store: isStoreWorking ? gone.length : 0 };
  }

  /** An original has come to where none was. */
  noteNew(original: number): void {
    const memory = this.#memory(original);
    const fresh = emptyMemory(memory.stored);
    if (this.usableVersion(original) === undefined) {
      Object.assign(fresh, { results: memory.results, bytes: memory.bytes });
    }
    this.#memories[original] = fresh;
  }

  /** The store has lost all that it had. */
  emptyStore(): void {
    for (const { stored } of this.#memories) stored.clear();
  }

  /** How the entity tag of a response is known; of an original that is passed on, its tag decides. */
  tagKey({ original, variant }: ModelRequest, version: Version): string {
    const isBySum = this.truth(original).place === 'site' && variant !== 'untouched';
    return `${original} ${nameOf(variant)} ${isBySum ? version.picture : `tag ${version.tag}`}`;
  }

  /** The version that a condition names. */
  conditionOf({ original, as }: ModelRequest): Version | undefined {
    if (as !== 'has it' && as !== 'had it') return undefined;
    return this.truth(original).versions.at(as === 'has it' ? -1 : -2);
  }

  isPassedOn({ original, variant }: ModelRequest): boolean {
    return variant === 'untouched' && this.truth(original).place !== 'asset';
  }

  /** What a request must get now; it is taken to have been served. */
  respond(request: ModelRequest): Expected {
    return respond(this, request, this.#memory(request.original));
  }

  /** A rendering of a version in the store, if that is asked and has it. */
  findStored(memory: Memory, key: string, work: Work): boolean {
    if (!this.setup.hasStore || this.nowMs < this.#storeFailedUntilMs) return false;
    work.storeReads += 1;
    if (this.store === 'works') return memory.stored.has(key);
    this.#storeFailedUntilMs = this.nowMs + periods.storeFailed;
    this.end(periods.storeFailed);
    return false;
  }

  /** What was there when the origin could say so last, if that may still be served. */
  usableVersion(original: number): Version | undefined {
    const { said } = this.#memory(original);
    const ofSite = this.truth(original).place === 'site' ? (said?.freshForMs ?? 0) : 0;
    const isUsable = said && this.nowMs - said.atMs < ofSite + periods.staleIfError;
    return isUsable ? said.version : undefined;
  }
}
