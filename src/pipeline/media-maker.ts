import type { MediaRequest } from '../contract/media-request.ts';
import type { CacheOutcome } from './cache-outcome.ts';
import type { Meter } from './meter.ts';
import type { HeldOriginal } from './originals/found-original.ts';
import type { OriginalIdentity, OriginalVersions } from './originals/freshness.ts';
import {
  type Approach,
  isOriginFailure,
  type Originals,
  type OriginalWork,
  type SeenOriginal,
} from './originals/originals.ts';
import type { MediaResult } from './ports.ts';
import type { Transformer } from './render/transformer.ts';
import type { RequestTrace, SpanDetails } from './request-trace.ts';
import type { NegativeCache } from './results/negative-cache.ts';
import type { Results } from './results/results.ts';
import type { FlightControls } from './single-flight.ts';
import { formatEtag, type Validators } from './validators.ts';

/** What answers are made with. */
export interface MediaMakerParts {
  readonly results: Results;
  readonly refusals: NegativeCache;
  readonly originals: Originals;
  readonly versions: OriginalVersions;
  readonly transformer: Transformer;
  readonly meter?: Pick<Meter, 'lookUps'>;
}

/** Work on one key, shared by all who wait for it. */
export interface MediaWork {
  /** The state of the original is known, the body may still be to come. */
  readonly opened: Promise<Opened>;
  /** Begins the rest of the way at its first call; the same promise each time. */
  readonly finish: () => Promise<Produced>;
}

/** The state of an answer, and what to tell of it if that is all that is needed. */
export interface Opened {
  readonly validators: Validators;
  /** Of an answer without a body, or of one that is there. */
  readonly outcome: CacheOutcome;
  /** Whether the body is there; if not, it is still to be made, which may fail. */
  readonly isMade: boolean;
}

/** An answer, and what to tell of how it came about. */
export interface Produced {
  readonly result: MediaResult;
  readonly outcome: CacheOutcome;
}

/** What belongs to the work on one key; its signal aborts when nobody waits for it any more. */
export interface MakeOptions extends FlightControls {
  readonly trace: RequestTrace;
}

/** What the work on a key begins with. */
export interface MediaTask {
  readonly request: MediaRequest;
  readonly key: string;
  /** An answer in memory that is not known to be current. */
  readonly known: MediaResult | undefined;
  /** See `OriginalVersions.epochOf`. */
  readonly epoch: number;
}

/** Makes one answer: from what is stored, or by transforming its original; or finds that none is needed. */
export class MediaMaker {
  readonly #parts: MediaMakerParts;

  constructor(parts: MediaMakerParts) {
    this.#parts = parts;
  }

  /** Learns the state of the original; what follows waits until somebody needs the body. */
  begin(task: MediaTask, options: MakeOptions): MediaWork {
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
    task: MediaTask,
    options: MakeOptions,
  ): Promise<{ readonly opened: Opened; readonly finish: () => Promise<Produced> }> {
    const { known, request } = task;
    const { originals, versions } = this.#parts;
    const { originKey } = request;
    const settled = (result: MediaResult, outcome: CacheOutcome) => ({
      opened: { validators: result, outcome, isMade: true },
      finish: async () => ({ result, outcome }),
    });
    const stale = versions.hasFailed(originKey) && (await this.#findStale(task, options));
    if (stale) return settled(stale, { kind: 'hit', detail: 'stale-if-error' });

    const original = originals.find(originKey, this.#approach(task), options.signal);
    const visit = options.trace.enter('origin');
    visit.note({ part: 'state' });
    let seen: SeenOriginal;
    try {
      seen = await original.found;
    } catch (error) {
      visit.leave(error);
      const last = isOriginFailure(error) && (await this.#findStale(task, options));
      if (!last) throw error;
      return settled(last, { kind: 'stale', detail: 'stale-if-error' });
    }
    if (seen.wasAsked) visit.leave();
    const { identity, wasAsked } = seen;
    if (known?.originalEtag === identity.etag) {
      return settled(known, wasAsked ? { kind: 'stale', originStatus: 304 } : { kind: 'hit' });
    }
    return {
      opened: {
        validators: validatorsOf(identity, task.key),
        outcome: wasAsked ? { kind: kindOf(known) } : { kind: 'hit' },
        isMade: false,
      },
      finish: async () =>
        (await this.#findStored(task, seen, options)) ??
        (await this.#render(task, original, options)),
    };
  }

  /** No more than the state, where that may do; in a crowd, the first bytes of what may be an animation. */
  #approach({ known, request }: MediaTask): Approach {
    const { results, transformer } = this.#parts;
    if (transformer.isCrowdedFor(request)) return 'first frames';
    return known !== undefined || results.isPersistent ? 'identity' : 'whole';
  }

  /** What was right when the origin could be asked last. */
  async #findStale(task: MediaTask, options: MakeOptions): Promise<MediaResult | undefined> {
    const { known, request } = task;
    const version = this.#parts.versions.find(request.originKey);
    if (version === undefined) return undefined;
    const { identity } = version;
    return known?.originalEtag === identity.etag
      ? known
      : this.#readStored(task, identity, options);
  }

  async #findStored(
    task: MediaTask,
    { identity, wasAsked }: SeenOriginal,
    options: MakeOptions,
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
    { key, request, epoch }: MediaTask,
    identity: OriginalIdentity,
    { signal, trace }: MakeOptions,
  ): Promise<MediaResult | undefined> {
    const { results, versions } = this.#parts;
    if (!results.isPersistent) return undefined;
    const { originKey } = request;
    const originalEtag = identity.etag;
    const stored = await trace.time(
      'store',
      () => results.find({ originKey, key, originalEtag }, signal),
      (found) => ({ memory: 'store', isFound: found !== undefined, ...sizeOf(found?.body) }),
    );
    if (stored === undefined) return undefined;
    const result = { ...stored, ...validatorsOf(identity, key), originalEtag };
    if (epoch === versions.epochOf(originKey)) results.keep(key, result);
    return result;
  }

  async #hold(
    request: MediaRequest,
    original: OriginalWork,
    trace: RequestTrace,
  ): Promise<HeldOriginal> {
    const { transformer } = this.#parts;
    const visit = trace.enter('origin');
    visit.note({ part: 'body' });
    let isRead = false;
    const leave = (error?: unknown): void => {
      if (isRead) visit.leave(error);
    };
    try {
      const held = await original.hold({
        isHesitant: transformer.isCrowdedFor(request),
        judge: (prefix) => transformer.judge(request, prefix),
        noteRead: () => {
          isRead = true;
        },
      });
      visit.note(sizeOf(held.bytes));
      leave();
      return held;
    } catch (error) {
      leave(error);
      throw error;
    }
  }

  /** From the original to the kept result; what cannot be made of it is kept in mind as well. */
  async #render(
    { key, known, request, epoch }: MediaTask,
    original: OriginalWork,
    options: MakeOptions,
  ): Promise<Produced> {
    const { refusals, results, transformer, versions } = this.#parts;
    const { originKey } = request;
    const isCurrent = (): boolean => epoch === versions.epochOf(originKey);
    try {
      const held = await this.#hold(request, original, options.trace);
      const { isOriginal, ...transformed } = await transformer.transform(request, held, {
        ...options,
        isCurrent,
      });
      const { identity } = held;
      const originalEtag = identity.etag;
      const result = { ...transformed, ...validatorsOf(identity, key), originalEtag };
      if (!isCurrent()) return { result, outcome: { kind: kindOf(known) } };
      // The store would only be another place to read the original from.
      const rendering = { originKey, key, originalEtag };
      if (!isOriginal) results.store(rendering, transformed, options.trace);
      return { result, outcome: { kind: kindOf(known), stored: results.keep(key, result) } };
    } catch (error) {
      if (isCurrent()) refusals.note(key, originKey, error);
      throw error;
    }
  }
}

function sizeOf(body: Uint8Array | undefined): SpanDetails {
  return body === undefined ? {} : { bytes: body.byteLength };
}

/** What looking a result up in memory has come to. */
export function kindOf(known: MediaResult | undefined): 'miss' | 'stale' {
  return known === undefined ? 'miss' : 'stale';
}

function validatorsOf({ etag, lastModified }: OriginalIdentity, key: string): Validators {
  return { etag: formatEtag(etag, key), lastModified };
}
