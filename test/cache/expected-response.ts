import {
  type Ask,
  type CacheModel,
  MAX_LOST_WORKERS,
  type Memory,
  nameOf,
  noWork,
  periods,
  type Truth,
  type Version,
  type Work,
} from './cache-model.ts';

/** What a response must be. */
export interface Expected {
  readonly status: number;
  /** Of a success: whose picture it is; identity of its entity tag. */
  readonly version?: Version;
  readonly cacheStatus: string;
  readonly cacheControl: string;
  readonly stages: readonly string[];
  /** Whether it tells nothing of how it came about. */
  readonly isConcealed?: boolean;
  readonly work: Work;
}

const codes = { 404: 30, 415: 300, 422: 300 } as const;
export type Refused = 404 | 415 | 422 | 502 | 503 | 504;

/** An expectation in the making: the work of a request so far, and how it is refused. */
class Refusal extends Error {
  readonly status: Refused;
  readonly cacheStatus: string;

  constructor(status: Refused, cacheStatus: string) {
    super(cacheStatus);
    this.status = status;
    this.cacheStatus = cacheStatus;
  }
}

/** One request, on its way through what is remembered. */
export class Attempt {
  readonly #model: CacheModel;
  readonly #ask: Ask;
  readonly #memory: Memory;
  readonly #truth: Truth;
  readonly #name: string;
  readonly #work = noWork();
  readonly #stages = new Set<string>();
  readonly #isSite: boolean;
  readonly #known: Version | undefined;

  constructor(model: CacheModel, ask: Ask, memory: Memory) {
    this.#model = model;
    this.#ask = ask;
    this.#memory = memory;
    this.#truth = model.truth(ask.original);
    this.#name = nameOf(ask.variant);
    this.#isSite = this.#truth.place === 'site';
    this.#known = memory.results.get(this.#name);
  }

  respond(): Expected {
    try {
      const isPassedOn = this.#model.isPassedOn(this.#ask);
      const { version, cacheStatus } = isPassedOn ? this.#passOn() : this.#find();
      const status = this.#isMet(version, true) ? 304 : this.#ask.as === 'range' ? 206 : 200;
      return this.#finish(status, cacheStatus, version);
    } catch (error) {
      if (error instanceof Current) return this.#finish(304, error.cacheStatus, error.version);
      if (!(error instanceof Refusal)) throw error;
      // Nobody maps a network through us.
      const isConcealed = this.#isSite && error.status === 502;
      if (!isConcealed) return this.#finish(error.status, error.cacheStatus);
      return { ...this.#finish(error.status, 'fwd=miss'), stages: [], isConcealed };
    }
  }

  #finish(status: number, cacheStatus: string, version?: Version): Expected {
    const stages = [...this.#stages].sort();
    const cacheControl =
      version === undefined ? controlOf(status) : this.#isSite ? this.#siteControl() : FOR_EVER;
    return {
      status,
      cacheStatus,
      cacheControl,
      stages,
      work: this.#work,
      ...(version && { version }),
    };
  }

  #siteControl(): string {
    const isFresh = this.#model.freshVersion(this.#ask.original) !== undefined;
    const passedOn = this.#model.isPassedOn(this.#ask) ? this.#truth.freshForMs : undefined;
    const kept = isFresh ? this.#memory.said?.freshForMs : undefined;
    return `public, max-age=${(passedOn ?? kept ?? periods.siteLeast) / 1000}`;
  }

  /** What is remembered of the request; else its original is identified, and more is done where that is needed. */
  #find(): { version: Version; cacheStatus: string } {
    this.#stages.add('store');
    const { original } = this.#ask;
    const fresh = this.#model.freshVersion(original);
    const known = this.#known;
    if (known !== undefined && this.#isSame(known, fresh))
      return { version: known, cacheStatus: 'hit' };
    const refusal = this.#memory.refusals.get(this.#name);
    if (refusal && this.#model.nowMs < refusal.untilMs) throw new Refusal(refusal.status, 'hit');
    this.#checkMissing('hit');
    const { failure } = this.#memory;
    const failedForMs = known === undefined ? this.#failedForMs : this.#failedWithMs;
    if (fresh === undefined && failure !== undefined && this.#hasFailed(failedForMs)) {
      const version = this.#findStale();
      if (version !== undefined) return { version, cacheStatus: 'hit; detail=stale-if-error' };
      throw new Refusal(failure.status, this.#fwd);
    }
    return fresh === undefined ? this.#revalidate() : this.#make(fresh, false, false);
  }

  #checkMissing(cacheStatus: string): void {
    const { said } = this.#memory;
    const isGone = said !== undefined && said.version === undefined;
    const isLately = isGone && this.#model.nowMs - said.atMs < periods.missing;
    if (isLately) throw new Refusal(404, cacheStatus);
  }

  get #fwd(): string {
    return `fwd=${this.#known === undefined ? 'miss' : 'stale'}`;
  }

  #revalidate(): { version: Version; cacheStatus: string } {
    const { said, bytes } = this.#memory;
    try {
      const { as, original } = this.#ask;
      const isConditional = ['has it', 'had it', 'has any', 'dated'].includes(as);
      const mayBeEnough = this.#known !== undefined || this.#model.setup.hasStore || isConditional;
      const last = this.#model.usableVersion(original);
      const isPeek = this.#isSite
        ? last !== undefined && (mayBeEnough || this.#isSame(last, bytes))
        : mayBeEnough || bytes !== undefined;
      this.#work[isPeek ? 'peeks' : 'wholes'] += 1;
      this.#stages.add('origin');
      const version = this.#listen();
      const isUnchanged = this.#isSite && isPeek && said?.version?.tag === version.tag;
      const isWhole = this.#isSite ? !isUnchanged : !isPeek;
      // Of another site's body, which is its identity, nothing is known before its end.
      if (this.#isSite && isWhole) {
        this.#receive();
        this.#hold(version);
      } else {
        this.#hear(version);
      }
      return this.#make(version, true, isWhole);
    } catch (error) {
      const isFailure = error instanceof Refusal && (error.status === 502 || error.status === 504);
      if (!isFailure || this.#isPrepared) throw error;
      const version = this.#findStale();
      if (version === undefined) throw error;
      return { version, cacheStatus: 'fwd=stale; detail=stale-if-error' };
    }
  }

  /** Whether the original is identified, so that an older result is no response any more. */
  #isPrepared = false;

  #make(
    fresh: Version,
    wasAsked: boolean,
    isOpen: boolean,
  ): { version: Version; cacheStatus: string } {
    this.#isPrepared = true;
    const { setup } = this.#model;
    if (this.#known !== undefined && this.#isSame(this.#known, fresh)) {
      return { version: this.#known, cacheStatus: wasAsked ? 'fwd=stale; fwd-status=304' : 'hit' };
    }
    if (this.#isMet(fresh, false)) throw new Current(fresh, wasAsked ? this.#fwd : 'hit');
    if (this.#model.findStored(this.#memory, this.#storeKey(fresh), this.#work)) {
      this.#keep(fresh);
      const revalidated = wasAsked ? 'fwd=stale; fwd-status=304' : 'hit';
      return { version: fresh, cacheStatus: `${revalidated}; detail=store` };
    }
    const version = this.#read(fresh, isOpen);
    if (version.picture === 0) this.#refuse(415, periods.refused);
    if (this.#ask.variant !== 'untouched') this.#render(version);
    this.#keep(version);
    return { version, cacheStatus: `${this.#fwd}${setup.keepsResults ? '; stored' : ''}` };
  }

  #read(fresh: Version, isOpen: boolean): Version {
    const { bytes } = this.#memory;
    if ((bytes && this.#isSame(bytes, fresh)) || (this.#isSite && isOpen)) return fresh;
    this.#stages.add('origin');
    let version = fresh;
    if (!isOpen) {
      this.#checkFailure();
      this.#work.wholes += 1;
      version = this.#listen();
    }
    this.#receive();
    this.#hold(version);
    return version;
  }

  /** The whole of a version has come. */
  #hold(version: Version): void {
    this.#hear(version);
    if (this.#model.setup.keepsOriginals) this.#memory.bytes = version;
  }

  #render(version: Version): void {
    const { nowMs, setup } = this.#model;
    const memory = this.#memory;
    const leftMs = memory.stoppedUntilMs - nowMs;
    if (leftMs > 0) this.#refuse(504, Math.min(periods.late, leftMs));
    const lost = nowMs < memory.lost.untilMs ? memory.lost.count : 0;
    if (lost >= MAX_LOST_WORKERS) this.#refuse(422, periods.refused);
    this.#work.renders += 1;
    for (const stage of ['queue', 'render']) this.#stages.add(stage);
    switch (this.#truth.render) {
      case 'refuses':
        this.#refuse(422, periods.refused);
        break;
      case 'costs a worker':
        this.#model.end(periods.original);
        memory.lost = { count: lost + 1, untilMs: nowMs + periods.original };
        this.#refuse(422, periods.refused);
        break;
      case 'is stopped':
        this.#model.end(periods.original);
        memory.stoppedUntilMs = nowMs + periods.original;
        this.#refuse(504, periods.late);
        break;
      case 'is late':
        this.#refuse(504, periods.late);
        break;
      case 'is busy':
        throw new Refusal(503, this.#fwd);
    }
    if (!setup.hasStore) return;
    this.#work.storeWrites += 1;
    if (this.#model.store === 'works') memory.stored.add(this.#storeKey(version));
  }

  /** What is passed on is asked for each time; of another site a failure is remembered. */
  #passOn(): { version: Version; cacheStatus: string } {
    const { said, failure } = this.#memory;
    const fwd = 'fwd=bypass';
    if (this.#isSite) {
      this.#checkFailure(fwd);
      this.#checkMissing(fwd);
    }
    const isWhole = this.#isSite || this.#ask.as === 'get';
    this.#work[isWhole ? 'wholes' : 'peeks'] += 1;
    this.#stages.add('origin');
    const before = { said, failure };
    try {
      const version = this.#listen(fwd);
      this.#receive(fwd);
      if (this.#isSite && version.picture === 0) throw new Refusal(415, fwd);
      return { version, cacheStatus: fwd };
    } finally {
      // Of the storage, what is passed on says nothing.
      if (!this.#isSite) Object.assign(this.#memory, before);
    }
  }

  /** What the origin says when it is asked; a failure is remembered, and so is that there is nothing. */
  #listen(fwd = this.#fwd): Version {
    const { origin, isThere, versions } = this.#truth;
    const atMs = this.#model.nowMs;
    if (origin === 'fails' || origin === 'hangs') {
      const status = origin === 'hangs' && !this.#isSite ? 504 : 502;
      this.#fail(status, fwd);
    }
    if (origin === 'is full' && !this.#isSite) throw new Refusal(503, fwd);
    const version = versions.at(-1);
    if (isThere && version !== undefined) return version;
    Object.assign(this.#memory, { said: { atMs, freshForMs: 0 }, failure: undefined });
    this.#model.end(periods.missing);
    throw new Refusal(404, fwd);
  }

  #hear(version: Version): void {
    const freshForMs = this.#isSite ? this.#truth.freshForMs : this.#model.setup.freshForMs;
    this.#memory.said = { version, atMs: this.#model.nowMs, freshForMs };
    const { staleIfError } = periods;
    this.#model.end(freshForMs, this.#isSite ? freshForMs + staleIfError : staleIfError);
    this.#memory.failure = undefined;
  }

  /** A body comes to its end, or breaks off. */
  #receive(fwd = this.#fwd): void {
    if (this.#truth.origin !== 'cuts') return;
    this.#fail(502, fwd);
  }

  /** What another attempt would only repeat is remembered for a while. */
  #fail(status: 502 | 504, fwd: string): never {
    this.#memory.failure = { status, atMs: this.#model.nowMs };
    this.#model.end(periods.failedWith, this.#failedForMs);
    throw new Refusal(status, fwd);
  }

  /** How long the origin is left alone where there is nothing to serve instead. */
  get #failedForMs(): number {
    return this.#isSite ? periods.siteFailed : periods.failedWithout;
  }

  /** The same while an older result of the request is at hand. */
  get #failedWithMs(): number {
    return this.#isSite ? periods.siteFailed : periods.failedWith;
  }

  /** Throws the failure of just now, if there was one. */
  #checkFailure(fwd = this.#fwd): void {
    const { failure } = this.#memory;
    if (failure && this.#hasFailed(this.#failedForMs)) throw new Refusal(failure.status, fwd);
  }

  #findStale(): Version | undefined {
    const version = this.#model.usableVersion(this.#ask.original);
    if (version === undefined) return undefined;
    if (this.#known !== undefined && this.#isSame(this.#known, version)) return this.#known;
    if (!this.#model.findStored(this.#memory, this.#storeKey(version), this.#work))
      return undefined;
    this.#keep(version);
    return version;
  }

  #keep(version: Version): void {
    if (this.#model.setup.keepsResults) this.#memory.results.set(this.#name, version);
  }

  #refuse(status: Refused, forMs: number): never {
    // One that ends with this very millisecond is not worth keeping.
    const untilMs = this.#model.nowMs + forMs;
    if (forMs > 1) this.#memory.refusals.set(this.#name, { status, untilMs });
    this.#model.end(forMs);
    throw new Refusal(status, this.#fwd);
  }

  #hasFailed(withinMs: number): boolean {
    const { failure } = this.#memory;
    return failure !== undefined && this.#model.nowMs - failure.atMs < withinMs;
  }

  #storeKey(version: Version): string {
    return `${this.#name} ${this.#isSite ? version.picture : version.tag}`;
  }

  /** Of another site the bytes decide. */
  #isSame(one: Version, other: Version | undefined): boolean {
    return this.#isSite ? one.picture === other?.picture : one.tag === other?.tag;
  }

  #isMet(version: Version, isMade: boolean): boolean {
    if (this.#ask.as === 'dated') return true;
    if (this.#ask.as === 'has any') return isMade;
    const named = this.#model.conditionOf(this.#ask);
    if (named === undefined) return false;
    const key = this.#model.tagKey(this.#ask, named);
    return this.#model.tags.has(key) && key === this.#model.tagKey(this.#ask, version);
  }
}

/** The client has what is there, as far as is known before it is made. */
class Current extends Error {
  readonly version: Version;
  readonly cacheStatus: string;

  constructor(version: Version, cacheStatus: string) {
    super(cacheStatus);
    this.version = version;
    this.cacheStatus = cacheStatus;
  }
}

const FOR_EVER = 'public, max-age=31536000, immutable';

function controlOf(status: number): string {
  const seconds = codes[status as keyof typeof codes];
  return seconds === undefined ? 'no-store' : `public, max-age=${seconds}`;
}
