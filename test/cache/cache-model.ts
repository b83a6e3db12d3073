import { type Expected, type Refused, respond } from './expected-response.ts';

/** Periods of the contract, in milliseconds, stated independently of the service. */
export const periods = {
  /** Freshness of an original in the storage (CACHE_REVALIDATE_SECONDS). */
  fresh: 300_000,
  /** Freshness of another site's original: the minimum, and a declared one (contract §8). */
  siteMinimum: 3_600_000,
  siteLonger: 7_200_000,
  missing: 30_000,
  /** Period without requests to the origin after a failure: without and with an older result. */
  failedWithout: 2_000,
  failedWith: 5_000,
  siteFailed: 60_000,
  staleIfError: 86_400_000,
  /** Duration of a 415 or 422, of a 504, and of the record of an original's late renders and lost workers. */
  refused: 300_000,
  late: 60_000,
  original: 600_000,
  storeFailed: 5_000,
} as const;

/** Lost workers after which an original is refused. */
export const MAX_LOST_WORKERS = 3;

export interface Setup {
  readonly hasStore: boolean;
  readonly keepsResults: boolean;
  readonly keepsOriginals: boolean;
  /** Whether the origin returns small originals as bytes, like a directory, or as a stream, like S3. */
  readonly returnsBytes: boolean;
  readonly freshForMs: number;
}

/** State of an original: its tag in the storage, and the number of its picture; 0 is a text. */
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

export const places = ['asset', 'attachment', 'site'] as const;
export type Place = (typeof places)[number];

/** The present state of an original, and the outcome of its reads and renders. */
export interface Truth {
  readonly place: Place;
  /** All versions; the last one is current. */
  readonly versions: Version[];
  exists: boolean;
  origin: (typeof originScripts)[number];
  render: (typeof renderScripts)[number];
  /** Freshness that the site declares. */
  freshForMs: number;
}

/** Requests for each original; `respelled` is another URL of `small`. */
export const variants = ['small', 'respelled', 'large', 'png', 'untouched'] as const;
export type Variant = (typeof variants)[number];

/** Methods and conditions; conditions name the present version, the one before, or any. */
export const requestKinds = [
  'get',
  'head',
  'has it',
  'had it',
  'has any',
  'dated',
  'range',
] as const;
export type RequestKind = (typeof requestKinds)[number];

export interface ModelRequest {
  readonly original: number;
  readonly variant: Variant;
  readonly as: RequestKind;
}

/** Counted work. A peek reads only the state; for another site, it is a conditional request. */
export type Work = ReturnType<typeof noWork>;
export const noWork = () => ({
  fullReads: 0,
  peeks: 0,
  renders: 0,
  storeReads: 0,
  storeWrites: 0,
});

export interface Memory {
  /** Last response of the origin; without a version, a 404. */
  lastResponse:
    | { readonly version?: Version; readonly atMs: number; readonly freshForMs: number }
    | undefined;
  failure: { readonly status: 502 | 504; readonly atMs: number } | undefined;
  bytes: Version | undefined;
  readonly results: Map<string, Version>;
  readonly refusals: Map<string, { readonly status: Refused; readonly untilMs: number }>;
  lost: { readonly count: number; readonly untilMs: number };
  /** Cheapest late render, by `costOf`. */
  late: { readonly cost: number; readonly untilMs: number };
  /** Results in the store, by request and tag. */
  readonly stored: Set<string>;
}

const emptyMemory = (stored = new Set<string>()): Memory => ({
  lastResponse: undefined,
  failure: undefined,
  bytes: undefined,
  results: new Map(),
  refusals: new Map(),
  lost: { count: 0, untilMs: 0 },
  late: { cost: 0, untilMs: 0 },
  stored,
});

/** Returns the name of the cache key of a variant. */
export const nameOf = (variant: Variant): string => (variant === 'respelled' ? 'small' : variant);

/** Returns the rank of the cost of a render; a PNG is encoded faster than a WebP of the same size. */
export const costOf = (variant: Variant): number =>
  ['png', 'small', 'large'].indexOf(nameOf(variant));

/** Predicts each response and its work from earlier requests. Knows only what is visible outside or at the storage. */
export class CacheModel {
  nowMs = 0;
  store: StoreScript = 'works';
  readonly setup: Setup;
  readonly truths: readonly Truth[];
  #memories: Memory[];
  #storeFailedUntilMs = 0;
  readonly #ends = new Set<number>();
  /** Observed entity tags, by everything that determines them. */
  readonly tags = new Map<string, string>();

  constructor(setup: Setup, truths: readonly Truth[]) {
    this.setup = setup;
    this.truths = truths;
    this.#memories = truths.map(() => emptyMemory());
  }

  truth(original: number): Truth {
    const truth = this.truths[original];
    if (truth === undefined) throw new Error(`unknown original ${original}`);
    return truth;
  }

  #memory(original: number): Memory {
    const memory = this.#memories[original];
    if (memory === undefined) throw new Error(`unknown original ${original}`);
    return memory;
  }

  /** Returns a copy, for predictions that leave this model unchanged. */
  clone(): CacheModel {
    const copy = new CacheModel(this.setup, this.truths);
    copy.nowMs = this.nowMs;
    copy.store = this.store;
    copy.#storeFailedUntilMs = this.#storeFailedUntilMs;
    for (const [key, tag] of this.tags) copy.tags.set(key, tag);
    copy.#memories = structuredClone(this.#memories);
    return copy;
  }

  /** Future moments at which a remembered period ends. */
  get deadlines(): readonly number[] {
    const future = [...this.#ends].filter((ms) => ms > this.nowMs + 1);
    return future.sort((a, b) => a - b);
  }

  /** Records the end of a period, so that walks can advance to it. */
  end(...afterMs: readonly number[]): void {
    for (const ms of afterMs) this.#ends.add(this.nowMs + ms);
  }

  /** Returns the version that the origin confirmed recently enough. */
  freshVersion(original: number): Version | undefined {
    const { lastResponse } = this.#memory(original);
    return lastResponse && this.nowMs - lastResponse.atMs < lastResponse.freshForMs
      ? lastResponse.version
      : undefined;
  }

  /** Forgets an original. With `variant`, other renderings of the original remain. */
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

  /** Records that an original was created where none existed. */
  noteNew(original: number): void {
    const memory = this.#memory(original);
    const fresh = emptyMemory(memory.stored);
    if (this.usableVersion(original) === undefined) {
      Object.assign(fresh, { results: memory.results, bytes: memory.bytes });
    }
    this.#memories[original] = fresh;
  }

  emptyStore(): void {
    for (const { stored } of this.#memories) stored.clear();
  }

  /** Returns everything that the entity tag of a response depends on. */
  tagKey({ original, variant }: ModelRequest, version: Version): string {
    const isBySum = this.truth(original).place === 'site' && variant !== 'untouched';
    return `${original} ${nameOf(variant)} ${isBySum ? version.picture : `tag ${version.tag}`}`;
  }

  conditionOf({ original, as }: ModelRequest): Version | undefined {
    if (as !== 'has it' && as !== 'had it') return undefined;
    return this.truth(original).versions.at(as === 'has it' ? -1 : -2);
  }

  isPassthrough({ original, variant }: ModelRequest): boolean {
    return variant === 'untouched' && this.truth(original).place !== 'asset';
  }

  /** Predicts the response to a request, and assumes that it was sent. */
  respond(request: ModelRequest): Expected {
    return respond(this, request, this.#memory(request.original));
  }

  /** Reads the store unless it failed recently; returns whether it has a rendering. */
  findStored(memory: Memory, key: string, work: Work): boolean {
    if (!this.setup.hasStore || this.nowMs < this.#storeFailedUntilMs) return false;
    work.storeReads += 1;
    if (this.store === 'works') return memory.stored.has(key);
    this.#storeFailedUntilMs = this.nowMs + periods.storeFailed;
    this.end(periods.storeFailed);
    return false;
  }

  /** Returns the last confirmed version, while it may be served despite failures. */
  usableVersion(original: number): Version | undefined {
    const { lastResponse } = this.#memory(original);
    const ofSite = this.truth(original).place === 'site' ? (lastResponse?.freshForMs ?? 0) : 0;
    const isUsable = lastResponse && this.nowMs - lastResponse.atMs < ofSite + periods.staleIfError;
    return isUsable ? lastResponse.version : undefined;
  }
}
