import {
  type CacheModel,
  costOf,
  MAX_LOST_WORKERS,
  type Memory,
  type ModelRequest,
  nameOf,
  noWork,
  periods,
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

const FOR_EVER = 'public, max-age=31536000, immutable';
const refusalSeconds = { 404: 30, 415: 300, 422: 300 } as const;
export type Refused = 404 | 415 | 422 | 502 | 503 | 504;

/** What a response is made of. */
interface Outcome {
  readonly status: 200 | 304 | Refused;
  readonly cacheStatus: string;
  readonly version?: Version;
}

/** An outcome before the end of the way: a refusal, or that the client has what is there. */
class Early extends Error {
  readonly outcome: Outcome;

  constructor(status: Outcome['status'], cacheStatus: string, version?: Version) {
    super(cacheStatus);
    this.outcome = { status, cacheStatus, ...(version && { version }) };
  }
}

/** Takes one request through what is remembered, and remembers what comes of it. */
export function respond(model: CacheModel, request: ModelRequest, memory: Memory): Expected {
  const { nowMs, setup } = model;
  const { original, as } = request;
  const truth = model.truth(original);
  const isSite = truth.place === 'site';
  const isPassedOn = model.isPassedOn(request);
  const name = nameOf(request.variant);
  const known = memory.results.get(name);
  const fwd = isPassedOn ? 'fwd=bypass' : known === undefined ? 'fwd=miss' : 'fwd=stale';
  /** How long the origin is left alone: with nothing to serve instead, and with an older result of the request at hand. */
  const failedWithoutMs = isSite ? periods.siteFailed : periods.failedWithout;
  const failedWithMs = isSite ? periods.siteFailed : periods.failedWith;
  const work = noWork();
  const stages = new Set<string>();
  /** Whether the original is identified, so that an older result is no response any more. */
  let isIdentified = false;

  const storeKey = ({ picture, tag }: Version) => `${name} ${isSite ? picture : tag}`;

  /** Of another site the bytes decide. */
  const isSame = (one: Version | undefined, other: Version | undefined): boolean =>
    one !== undefined && (isSite ? one.picture === other?.picture : one.tag === other?.tag);

  const hasFailed = (withinMs: number): boolean =>
    memory.failure !== undefined && nowMs - memory.failure.atMs < withinMs;

  const keep = (version: Version): void => {
    if (setup.keepsResults) memory.results.set(name, version);
  };

  const refuse = (status: Refused, forMs: number): never => {
    // One that ends with this very millisecond is not worth keeping.
    if (forMs > 1) memory.refusals.set(name, { status, untilMs: nowMs + forMs });
    model.end(forMs);
    throw new Early(status, fwd);
  };

  /** What another attempt would only repeat is remembered for a while. */
  const fail = (status: 502 | 504): never => {
    memory.failure = { status, atMs: nowMs };
    model.end(periods.failedWith, failedWithoutMs);
    throw new Early(status, fwd);
  };

  /** Throws the failure of just now, if there was one. */
  const checkFailure = (): void => {
    const { failure } = memory;
    if (failure && hasFailed(failedWithoutMs)) throw new Early(failure.status, fwd);
  };

  const checkMissing = (cacheStatus: string): void => {
    const { said } = memory;
    if (said && said.version === undefined && nowMs - said.atMs < periods.missing)
      throw new Early(404, cacheStatus);
  };

  /** Whether the client has a version. */
  const isMet = (version: Version, isMade: boolean): boolean => {
    if (as === 'dated') return true;
    if (as === 'has any') return isMade;
    const named = model.conditionOf(request);
    if (named === undefined) return false;
    const key = model.tagKey(request, named);
    return model.tags.has(key) && key === model.tagKey(request, version);
  };

  /** What the origin says when it is asked; a failure is remembered, and so is that there is nothing. */
  const listen = (): Version => {
    const { origin, isThere, versions } = truth;
    if (origin === 'fails' || origin === 'hangs') fail(origin === 'hangs' && !isSite ? 504 : 502);
    if (origin === 'is full' && !isSite) throw new Early(503, fwd);
    const version = versions.at(-1);
    if (isThere && version !== undefined) return version;
    Object.assign(memory, { said: { atMs: nowMs, freshForMs: 0 }, failure: undefined });
    model.end(periods.missing);
    throw new Early(404, fwd);
  };

  const hear = (version: Version): void => {
    const freshForMs = isSite ? truth.freshForMs : setup.freshForMs;
    memory.said = { version, atMs: nowMs, freshForMs };
    model.end(freshForMs, (isSite ? freshForMs : 0) + periods.staleIfError);
    memory.failure = undefined;
  };

  /** A body comes to its end, or breaks off. */
  const receive = (): void => {
    if (truth.origin === 'cuts') fail(502);
  };

  /** The whole of a version has come. */
  const hold = (version: Version): void => {
    hear(version);
    if (setup.keepsOriginals) memory.bytes = version;
  };

  /** What is passed on is asked for each time; of another site a failure is remembered. */
  const passOn = (): Outcome => {
    const { said, failure } = memory;
    if (isSite) {
      checkFailure();
      checkMissing(fwd);
    }
    work[isSite || as === 'get' ? 'wholes' : 'peeks'] += 1;
    stages.add('origin');
    try {
      const version = listen();
      receive();
      if (isSite && version.picture === 0) throw new Early(415, fwd);
      return { status: 200, version, cacheStatus: fwd };
    } finally {
      // Of the storage, what is passed on says nothing.
      if (!isSite) Object.assign(memory, { said, failure });
    }
  };

  const findStale = (): Version | undefined => {
    const version = model.usableVersion(original);
    if (version === undefined) return undefined;
    if (known !== undefined && isSame(known, version)) return known;
    if (!model.findStored(memory, storeKey(version), work)) return undefined;
    keep(version);
    return version;
  };

  /** What is remembered of the request; else its original is identified, and more is done where that is needed. */
  const find = (): Outcome => {
    stages.add('store');
    const fresh = model.freshVersion(original);
    if (known !== undefined && isSame(known, fresh))
      return { status: 200, version: known, cacheStatus: 'hit' };
    const refusal = memory.refusals.get(name);
    if (refusal && nowMs < refusal.untilMs) throw new Early(refusal.status, 'hit');
    checkMissing('hit');
    if (fresh !== undefined) return make(fresh, false, false);
    const { failure } = memory;
    if (failure === undefined || !hasFailed(known === undefined ? failedWithoutMs : failedWithMs))
      return revalidate();
    const version = findStale();
    if (version === undefined) throw new Early(failure.status, fwd);
    return { status: 200, version, cacheStatus: 'hit; detail=stale-if-error' };
  };

  const revalidate = (): Outcome => {
    const { said, bytes } = memory;
    try {
      const isConditional = ['has it', 'had it', 'has any', 'dated'].includes(as);
      const mayBeEnough = known !== undefined || setup.hasStore || isConditional;
      const last = model.usableVersion(original);
      const isPeek = isSite
        ? last !== undefined && (mayBeEnough || isSame(last, bytes))
        : mayBeEnough || bytes !== undefined;
      work[isPeek ? 'peeks' : 'wholes'] += 1;
      stages.add('origin');
      const version = listen();
      const isUnchanged = isSite && isPeek && said?.version?.tag === version.tag;
      const isWhole = isSite ? !isUnchanged : !isPeek;
      // Of another site's body, which is its identity, nothing is known before its end.
      if (isSite && isWhole) {
        receive();
        hold(version);
      } else {
        hear(version);
      }
      return make(version, true, isWhole);
    } catch (error) {
      const isFailure = error instanceof Early && [502, 504].includes(error.outcome.status);
      if (!isFailure || isIdentified) throw error;
      const version = findStale();
      if (version === undefined) throw error;
      return { status: 200, version, cacheStatus: 'fwd=stale; detail=stale-if-error' };
    }
  };

  const make = (fresh: Version, contactedOrigin: boolean, isOpen: boolean): Outcome => {
    isIdentified = true;
    const found = contactedOrigin ? 'fwd=stale; fwd-status=304' : 'hit';
    if (known !== undefined && isSame(known, fresh))
      return { status: 200, version: known, cacheStatus: found };
    if (isMet(fresh, false)) throw new Early(304, contactedOrigin ? fwd : 'hit', fresh);
    if (model.findStored(memory, storeKey(fresh), work)) {
      keep(fresh);
      return { status: 200, version: fresh, cacheStatus: `${found}; detail=store` };
    }
    const version = read(fresh, isOpen);
    if (version.picture === 0) refuse(415, periods.refused);
    if (request.variant !== 'untouched') render(version);
    keep(version);
    return { status: 200, version, cacheStatus: `${fwd}${setup.keepsResults ? '; stored' : ''}` };
  };

  const read = (fresh: Version, isOpen: boolean): Version => {
    if (isSame(memory.bytes, fresh) || (isSite && isOpen)) return fresh;
    stages.add('origin');
    let version = fresh;
    if (!isOpen) {
      checkFailure();
      work.wholes += 1;
      version = listen();
    }
    receive();
    hold(version);
    return version;
  };

  const render = (version: Version): void => {
    const leftMs = memory.late.untilMs - nowMs;
    const cost = costOf(request.variant);
    if (leftMs > 0 && cost >= memory.late.cost) refuse(504, Math.min(periods.late, leftMs));
    const lost = nowMs < memory.lost.untilMs ? memory.lost.count : 0;
    if (lost >= MAX_LOST_WORKERS) refuse(422, periods.refused);
    work.renders += 1;
    for (const stage of ['queue', 'render']) stages.add(stage);
    const script = truth.render;
    if (script === 'is busy') throw new Early(503, fwd);
    const untilMs = nowMs + periods.original;
    if (script === 'costs a worker') memory.lost = { count: lost + 1, untilMs };
    if (script === 'is late') memory.late = { cost, untilMs };
    if (script === 'costs a worker' || script === 'is late') model.end(periods.original);
    if (script === 'refuses' || script === 'costs a worker') refuse(422, periods.refused);
    if (script !== 'succeeds') refuse(504, periods.late);
    if (!setup.hasStore) return;
    work.storeWrites += 1;
    if (model.store === 'works') memory.stored.add(storeKey(version));
  };

  const controlOf = ({ status, version }: Outcome): string => {
    const refusedSeconds = refusalSeconds[status as keyof typeof refusalSeconds];
    if (version === undefined)
      return refusedSeconds === undefined ? 'no-store' : `public, max-age=${refusedSeconds}`;
    if (!isSite) return FOR_EVER;
    const isFresh = model.freshVersion(original) !== undefined;
    const { atMs = nowMs, freshForMs = 0 } = (isFresh ? memory.said : undefined) ?? {};
    const leftMs = isPassedOn ? truth.freshForMs : freshForMs - (nowMs - atMs);
    return `public, max-age=${Math.floor(Math.max(leftMs, periods.siteLeast) / 1000)}`;
  };

  const outcomeOf = (): Outcome => {
    try {
      return isPassedOn ? passOn() : find();
    } catch (error) {
      if (error instanceof Early) return error.outcome;
      throw error;
    }
  };

  const outcome = outcomeOf();
  const { version, cacheStatus } = outcome;
  const success = version && isMet(version, true) ? 304 : as === 'range' ? 206 : 200;
  // Nobody maps a network through us.
  const isConcealed = isSite && outcome.status === 502;
  return {
    status: outcome.status === 200 ? success : outcome.status,
    cacheStatus: isConcealed ? 'fwd=miss' : cacheStatus,
    cacheControl: controlOf(outcome),
    stages: isConcealed ? [] : [...stages].sort(),
    work,
    ...(version && { version }),
    ...(isConcealed && { isConcealed }),
  };
}
