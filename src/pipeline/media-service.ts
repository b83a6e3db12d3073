import { MediaError } from '../media/errors.ts';
import { type MediaRequest, resultKey } from '../media/media-request.ts';
import { unlessAborted } from './abort.ts';
import type { OriginalIdentity, OriginalVersions } from './original-versions.ts';
import { type Approach, isOriginFailure, type Originals, type SeenOriginal } from './originals.ts';
import type { CacheOutcome } from './outcome.ts';
import type { MediaResult } from './ports.ts';
import type { RefusalMemory } from './refusal-memory.ts';
import type { RequestTrace } from './request-trace.ts';
import type { Results } from './results.ts';
import { type FlightControls, SingleFlight } from './single-flight.ts';
import type { Transformer, TransformOptions } from './transformer.ts';
import { formatEtag, type Validators } from './validators.ts';

/** What the service is built from. */
export interface MediaServiceParts {
  readonly results: Results;
  readonly refusals: RefusalMemory;
  readonly originals: Originals;
  readonly versions: OriginalVersions;
  readonly transformer: Transformer;
}

/** What one request brings along. */
export interface ServeOptions {
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal;
  readonly trace: RequestTrace;
  /** Whether the client has this state already, so that no body is needed. */
  readonly isCurrent: (validators: Validators) => boolean;
}

/** An answer: a body, or the news that the client's is current. */
export type Served =
  | { readonly kind: 'current'; readonly validators: Validators }
  | { readonly kind: 'result'; readonly result: MediaResult };

/** Work on one key, shared by all who wait for it. */
interface Work {
  /** The state of the original is known, the body may still be to come. */
  readonly opened: Promise<Opened>;
  /** Begins the rest of the way at its first call; the same promise each time. */
  readonly finish: () => Promise<Produced>;
}

interface Opened {
  readonly validators: Validators;
  /** Of an answer without a body. */
  readonly outcome: CacheOutcome;
}

interface Produced {
  readonly result: MediaResult;
  readonly outcome: CacheOutcome;
}

/** What the work on a key begins with. */
interface Task {
  readonly request: MediaRequest;
  readonly key: string;
  /** An answer in memory that is not known to be current. */
  readonly known: MediaResult | undefined;
  /** See `OriginalVersions.epoch`. */
  readonly epoch: number;
}

/** Serves every media request that a transform may stand behind: results, origin, transform. */
export class MediaService {
  readonly #parts: MediaServiceParts;
  readonly #flights = new SingleFlight<Work>();

  constructor(parts: MediaServiceParts) {
    this.#parts = parts;
  }

  /**
   * Serves a request from what is kept, or by transforming its original.
   *
   * @throws MediaError of the origin, the limits or the renderer; `options.signal.reason` when the
   *   client has gone
   */
  async serve(request: MediaRequest, options: ServeOptions): Promise<Served> {
    const { signal, trace, isCurrent } = options;
    const { refusals, versions } = this.#parts;
    const key = resultKey(request);
    const known = this.#lookUp(key, trace);
    if (known !== undefined && this.#isFresh(known, request)) {
      trace.outcome = { kind: 'hit' };
      return answerWith(known, isCurrent);
    }

    const refusal = refusals.find(key);
    if (refusal !== undefined || versions.isGone(request.originKey)) {
      trace.outcome = { kind: 'hit' };
      throw refusal ?? new MediaError('UNKNOWN_MEDIA');
    }

    trace.outcome = { kind: kindOf(known) };
    const task = { request, key, known, epoch: versions.epoch };
    const begin = (controls: FlightControls): Work => this.#begin(task, { ...controls, trace });
    // Nobody joins what was begun before a purge.
    return this.#flights.run(`${task.epoch} ${key}`, signal, begin, async (work, collapsed) => {
      const note = (outcome: CacheOutcome): void => {
        trace.outcome = outcome.kind === 'hit' ? outcome : { ...outcome, collapsed };
      };
      note({ kind: kindOf(known) });
      const { validators, outcome } = await unlessAborted(work.opened, signal);
      note(outcome);
      if (isCurrent(validators)) return { kind: 'current', validators };
      const produced = await unlessAborted(work.finish(), signal);
      note(produced.outcome);
      return { kind: 'result', result: produced.result };
    });
  }

  #lookUp(key: string, trace: RequestTrace): MediaResult | undefined {
    const leave = trace.enter('store');
    const known = this.#parts.results.get(key);
    leave();
    return known;
  }

  #isFresh({ originalEtag }: MediaResult, { originKey }: MediaRequest): boolean {
    const version = this.#parts.versions.find(originKey);
    return version?.isFresh === true && version.identity.etag === originalEtag;
  }

  /** Learns the state of the original; what follows waits until somebody needs the body. */
  #begin(task: Task, options: TransformOptions): Work {
    const opening = this.#open(task, options);
    let produced: Promise<Produced> | undefined;
    return {
      opened: opening.then(({ opened }) => opened),
      finish: () => {
        produced ??= opening.then(({ finish }) => finish());
        return produced;
      },
    };
  }

  async #open(
    task: Task,
    options: TransformOptions,
  ): Promise<{ readonly opened: Opened; readonly finish: () => Promise<Produced> }> {
    const { known, request } = task;
    const { originals, versions } = this.#parts;
    const { originKey } = request;
    const settled = (result: MediaResult, outcome: CacheOutcome) => ({
      opened: { validators: result, outcome },
      finish: async () => ({ result, outcome }),
    });
    const stale = versions.hasFailed(originKey) && (await this.#findStale(task, options));
    if (stale) return settled(stale, { kind: 'hit', detail: 'stale-if-error' });

    const original = originals.find(originKey, this.#approach(task), options.signal);
    const leaveOrigin = options.trace.enter('origin');
    let seen: SeenOriginal;
    try {
      seen = await original.found;
    } catch (error) {
      leaveOrigin();
      const last = isOriginFailure(error) && (await this.#findStale(task, options));
      if (!last) throw error;
      return settled(last, { kind: 'stale', detail: 'stale-if-error' });
    }
    if (seen.wasAsked) leaveOrigin();
    const { identity, wasAsked } = seen;
    if (known?.originalEtag === identity.etag) {
      return settled(known, wasAsked ? { kind: 'stale', originStatus: 304 } : { kind: 'hit' });
    }
    return {
      opened: {
        validators: validatorsOf(identity, task.key),
        outcome: wasAsked ? { kind: kindOf(known) } : { kind: 'hit' },
      },
      finish: async () =>
        (await this.#findStored(task, seen, options)) ??
        (await this.#render(task, original, options)),
    };
  }

  /** In a crowd, the first bytes of what may be an animation; no more than the state, where that may do. */
  #approach({ known, request }: Task): Approach {
    const { results, transformer } = this.#parts;
    if (transformer.isCrowdedFor(request)) return 'first frames';
    return known !== undefined || results.isPersistent ? 'identity' : 'whole';
  }

  /** What was right when the origin could be asked last. */
  async #findStale(task: Task, options: TransformOptions): Promise<MediaResult | undefined> {
    const { known, request } = task;
    const version = this.#parts.versions.find(request.originKey);
    if (version === undefined) return undefined;
    const { identity } = version;
    return known?.originalEtag === identity.etag
      ? known
      : this.#readStored(task, identity, options);
  }

  async #findStored(
    task: Task,
    { identity, wasAsked }: SeenOriginal,
    options: TransformOptions,
  ): Promise<Produced | undefined> {
    const result = await this.#readStored(task, identity, options);
    if (result === undefined) return undefined;
    const detail = 'store';
    const outcome: CacheOutcome = wasAsked
      ? { kind: 'stale', originStatus: 304, detail }
      : { kind: 'hit', detail };
    return { result, outcome };
  }

  /** From the store to the memory. */
  async #readStored(
    { key, request, epoch }: Task,
    identity: OriginalIdentity,
    { signal, trace }: TransformOptions,
  ): Promise<MediaResult | undefined> {
    const { results, versions } = this.#parts;
    if (!results.isPersistent) return undefined;
    const { originKey } = request;
    const originalEtag = identity.etag;
    const stored = await trace.time('store', () =>
      results.find({ originKey, key, originalEtag }, signal),
    );
    if (stored === undefined) return undefined;
    const result = { ...stored, ...validatorsOf(identity, key), originalEtag };
    if (epoch === versions.epoch) results.keep(key, result);
    return result;
  }

  /** From the original to the kept result; what cannot be made of it is kept in mind as well. */
  async #render(
    { key, known, request, epoch }: Task,
    original: ReturnType<Originals['find']>,
    options: TransformOptions,
  ): Promise<Produced> {
    const { refusals, results, transformer, versions } = this.#parts;
    const { originKey } = request;
    try {
      const leaveOrigin = options.trace.enter('origin');
      const held = await original.hold((prefix) => transformer.judge(request, prefix));
      if (held.wasRead) leaveOrigin();
      const { isOriginal, ...transformed } = await transformer.transform(request, held, options);
      const { identity } = held;
      const originalEtag = identity.etag;
      const result = { ...transformed, ...validatorsOf(identity, key), originalEtag };
      if (epoch !== versions.epoch) return { result, outcome: { kind: kindOf(known) } };
      // The store would only be another place to read the original from.
      if (!isOriginal) results.store({ originKey, key, originalEtag }, transformed);
      return { result, outcome: { kind: kindOf(known), stored: results.keep(key, result) } };
    } catch (error) {
      refusals.note(key, originKey, error);
      throw error;
    }
  }
}

/** What looking a result up in memory has come to. */
function kindOf(known: MediaResult | undefined): 'miss' | 'stale' {
  return known === undefined ? 'miss' : 'stale';
}

function answerWith(result: MediaResult, isCurrent: ServeOptions['isCurrent']): Served {
  return isCurrent(result) ? { kind: 'current', validators: result } : { kind: 'result', result };
}

function validatorsOf({ etag, lastModified }: OriginalIdentity, key: string): Validators {
  return { etag: formatEtag(etag, key), lastModified };
}
