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

export interface Expected {
  readonly status: number;
  /** Version of a success, which its entity tag identifies. */
  readonly version?: Version;
  readonly cacheStatus: string;
  readonly cacheControl: string;
  readonly stages: readonly string[];
  /** Whether the response conceals its cause. */
  readonly isConcealed?: boolean;
  readonly work: Work;
}

const FOR_EVER = 'public, max-age=31536000, immutable';
const refusalSeconds = { 404: 30, 415: 300, 422: 300 } as const;
export type Refused = 404 | 415 | 422 | 502 | 503 | 504;

interface Outcome {
  readonly status: 200 | 304 | Refused;
  readonly cacheStatus: string;
  readonly version?: Version;
}

/** Ends the prediction early: a refusal, or a 304. */
class EarlyOutcome extends Error {
  readonly outcome: Outcome;

  constructor(status: Outcome['status'], cacheStatus: string, version?: Version) {
    super(cacheStatus);
    this.outcome = { status, cacheStatus, ...(version && { version }) };
  }
}

/** Predicts the response to a request, and updates what is remembered. */
export function respond(model: CacheModel, request: ModelRequest, memory: Memory): Expected {
  const { nowMs, setup } = model;
  const { original, as } = request;
  const truth = model.truth(original);
  const isSite = truth.place === 'site';
  const isPassthrough = model.isPassthrough(request);
  const name = nameOf(request.variant);
  const known = memory.results.get(name);
  const fwd = isPassthrough ? 'fwd=bypass' : known === undefined ? 'fwd=miss' : 'fwd=stale';
  /** Periods without requests to the origin after a failure. */
  const failedWithoutMs = isSite ? periods.siteFailed : periods.failedWithout;
  const failedWithMs = isSite ? periods.siteFailed : periods.failedWith;
  const work = noWork();
  const stages = new Set<string>();
  /** Whether the original is identified; older results are then outdated. */
  let isIdentified = false;

  const storeKey = ({ picture, tag }: Version) => `${name} ${isSite ? picture : tag}`;

  /** Originals of another site are identified by their bytes. */
  const isSame = (one: Version | undefined, other: Version | undefined): boolean =>
    one !== undefined && (isSite ? one.picture === other?.picture : one.tag === other?.tag);

  const hasFailed = (withinMs: number): boolean =>
    memory.failure !== undefined && nowMs - memory.failure.atMs < withinMs;

  const keep = (version: Version): void => {
    if (setup.keepsResults) memory.results.set(name, version);
  };

  const refuse = (status: Refused, forMs: number): never => {
    // A refusal that ends within this millisecond is not remembered.
    if (forMs > 1) memory.refusals.set(name, { status, untilMs: nowMs + forMs });
    model.end(forMs);
    throw new EarlyOutcome(status, fwd);
  };

  const fail = (status: 502 | 504): never => {
    memory.failure = { status, atMs: nowMs };
    model.end(periods.failedWith, failedWithoutMs);
    throw new EarlyOutcome(status, fwd);
  };

  const checkFailure = (): void => {
    const { failure } = memory;
    if (failure && hasFailed(failedWithoutMs)) throw new EarlyOutcome(failure.status, fwd);
  };

  const checkMissing = (cacheStatus: string): void => {
    const { lastResponse } = memory;
    if (
      lastResponse &&
      lastResponse.version === undefined &&
      nowMs - lastResponse.atMs < periods.missing
    )
      throw new EarlyOutcome(404, cacheStatus);
  };

  const matchesCondition = (version: Version, exists: boolean): boolean => {
    if (as === 'dated') return true;
    if (as === 'has any') return exists;
    const named = model.conditionOf(request);
    if (named === undefined) return false;
    const key = model.tagKey(request, named);
    return model.tags.has(key) && key === model.tagKey(request, version);
  };

  /** Predicts the response of the origin; remembers a failure or a 404. */
  const contactOrigin = (): Version => {
    const { origin, exists, versions } = truth;
    if (origin === 'fails' || origin === 'hangs') fail(origin === 'hangs' && !isSite ? 504 : 502);
    if (origin === 'is full' && !isSite) throw new EarlyOutcome(503, fwd);
    const version = versions.at(-1);
    if (exists && version !== undefined) return version;
    Object.assign(memory, { lastResponse: { atMs: nowMs, freshForMs: 0 }, failure: undefined });
    model.end(periods.missing);
    throw new EarlyOutcome(404, fwd);
  };

  const recordResponse = (version: Version): void => {
    const freshForMs = isSite ? truth.freshForMs : setup.freshForMs;
    memory.lastResponse = { version, atMs: nowMs, freshForMs };
    model.end(freshForMs, (isSite ? freshForMs : 0) + periods.staleIfError);
    memory.failure = undefined;
  };

  /** Completes a body, or fails if it breaks off. */
  const receive = (): void => {
    if (truth.origin === 'cuts') fail(502);
  };

  const cacheOriginal = (version: Version): void => {
    recordResponse(version);
    if (setup.keepsOriginals) memory.bytes = version;
  };

  /** Predicts a passthrough, which always contacts the origin; remembers failures of another site. */
  const passThrough = (): Outcome => {
    const { lastResponse, failure } = memory;
    if (isSite) {
      checkFailure();
      checkMissing(fwd);
    }
    work[isSite || as === 'get' ? 'fullReads' : 'peeks'] += 1;
    stages.add('origin');
    try {
      const version = contactOrigin();
      receive();
      if (isSite && version.picture === 0) throw new EarlyOutcome(415, fwd);
      return { status: 200, version, cacheStatus: fwd };
    } finally {
      // A passthrough of the storage updates nothing.
      if (!isSite) Object.assign(memory, { lastResponse, failure });
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

  /** Finds a remembered outcome, or identifies the original. */
  const find = (): Outcome => {
    stages.add('store');
    const fresh = model.freshVersion(original);
    if (known !== undefined && isSame(known, fresh))
      return { status: 200, version: known, cacheStatus: 'hit' };
    const refusal = memory.refusals.get(name);
    if (refusal && nowMs < refusal.untilMs) throw new EarlyOutcome(refusal.status, 'hit');
    checkMissing('hit');
    if (fresh !== undefined) return serveIdentified(fresh, false, false);
    const { failure } = memory;
    if (failure === undefined || !hasFailed(known === undefined ? failedWithoutMs : failedWithMs))
      return revalidate();
    const version = findStale();
    if (version === undefined) throw new EarlyOutcome(failure.status, fwd);
    return { status: 200, version, cacheStatus: 'hit; detail=stale-if-error' };
  };

  const revalidate = (): Outcome => {
    const { lastResponse, bytes } = memory;
    try {
      const isConditional = ['has it', 'had it', 'has any', 'dated'].includes(as);
      const mayBeEnough = known !== undefined || setup.hasStore || isConditional;
      const last = model.usableVersion(original);
      const isPeek = isSite
        ? last !== undefined && (mayBeEnough || isSame(last, bytes))
        : mayBeEnough || bytes !== undefined;
      work[isPeek ? 'peeks' : 'fullReads'] += 1;
      stages.add('origin');
      const version = contactOrigin();
      const isUnchanged = isSite && isPeek && lastResponse?.version?.tag === version.tag;
      const isWhole = isSite ? !isUnchanged : !isPeek;
      // Another site's original is identified by its complete body.
      if (isSite && isWhole) {
        receive();
        cacheOriginal(version);
      } else {
        recordResponse(version);
      }
      return serveIdentified(version, true, isWhole);
    } catch (error) {
      const isFailure = error instanceof EarlyOutcome && [502, 504].includes(error.outcome.status);
      if (!isFailure || isIdentified) throw error;
      const version = findStale();
      if (version === undefined) throw error;
      return { status: 200, version, cacheStatus: 'fwd=stale; detail=stale-if-error' };
    }
  };

  const serveIdentified = (fresh: Version, contactedOrigin: boolean, isOpen: boolean): Outcome => {
    isIdentified = true;
    const found = contactedOrigin ? 'fwd=stale; fwd-status=304' : 'hit';
    if (known !== undefined && isSame(known, fresh))
      return { status: 200, version: known, cacheStatus: found };
    if (matchesCondition(fresh, false))
      throw new EarlyOutcome(304, contactedOrigin ? fwd : 'hit', fresh);
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
      work.fullReads += 1;
      version = contactOrigin();
    }
    receive();
    cacheOriginal(version);
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
    if (script === 'is busy') throw new EarlyOutcome(503, fwd);
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
    const { atMs = nowMs, freshForMs = 0 } = (isFresh ? memory.lastResponse : undefined) ?? {};
    const leftMs = isPassthrough ? truth.freshForMs : freshForMs - (nowMs - atMs);
    return `public, max-age=${Math.floor(Math.max(leftMs, periods.siteMinimum) / 1000)}`;
  };

  const outcomeOf = (): Outcome => {
    try {
      return isPassthrough ? passThrough() : find();
    } catch (error) {
      if (error instanceof EarlyOutcome) return error.outcome;
      throw error;
    }
  };

  const outcome = outcomeOf();
  const { version, cacheStatus } = outcome;
  const success = version && matchesCondition(version, true) ? 304 : as === 'range' ? 206 : 200;
  // Details would allow clients to scan a network.
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
