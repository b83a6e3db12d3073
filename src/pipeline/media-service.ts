import { MediaError } from '../media/errors.ts';
import { readImageFacts } from '../media/header/read-image-facts.ts';
import { outputFormats, sourceFormats } from '../media/image-format.ts';
import { type MediaRequest, resultKey } from '../media/media-request.ts';
import type { Admission } from './admission.ts';
import { type OriginLimits, openOriginal, readOriginal } from './original.ts';
import { type DecodeLimits, planMedia } from './plan.ts';
import type { Clock, MediaResult, Origin, OriginObject, Renderer, ResultStore } from './ports.ts';
import type { RequestTrace } from './request-trace.ts';
import { SingleFlight } from './single-flight.ts';
import { formatEtag, type Validators } from './validators.ts';

/** What the service is built from. */
export interface MediaServiceParts {
  readonly origin: Origin;
  readonly store: ResultStore;
  readonly renderer: Renderer;
  readonly admission: Admission;
  readonly clock: Clock;
  readonly originLimits: OriginLimits;
  readonly decodeLimits: DecodeLimits;
  /** How long a kept result is served before the origin is asked whether it is current, in milliseconds. */
  readonly revalidateAfterMs: number;
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
  /** The origin has answered: the validators are known, the body may still be to come. */
  readonly opened: Promise<{ readonly validators: Validators; readonly isRevalidated: boolean }>;
  /** Begins the rest of the way at its first call; the same promise each time. */
  readonly finish: () => Promise<Produced>;
}

interface Produced {
  readonly result: MediaResult;
  readonly stored: boolean;
}

/** Serves every media request that a transform may stand behind: store, origin, plan, render. */
export class MediaService {
  readonly #parts: MediaServiceParts;
  readonly #flights = new SingleFlight<Work>();

  constructor(parts: MediaServiceParts) {
    this.#parts = parts;
  }

  /**
   * Serves a request from the store, or by rendering its original.
   *
   * @throws MediaError of the origin, the limits or the renderer; `options.signal.reason` when the
   *   client has gone
   */
  async serve(request: MediaRequest, options: ServeOptions): Promise<Served> {
    const { signal, trace, isCurrent } = options;
    const key = resultKey(request);
    const known = this.#find(key, trace);
    if (known !== undefined && this.#isFresh(known)) {
      trace.outcome = { kind: 'hit' };
      return isCurrent(known)
        ? { kind: 'current', validators: known }
        : { kind: 'result', result: known };
    }

    const kind: 'miss' | 'stale' = known === undefined ? 'miss' : 'stale';
    trace.outcome = { kind };
    const begin = (shared: AbortSignal): Work => this.#begin(request, key, known, trace, shared);
    return this.#flights.run(key, signal, begin, async (work, collapsed) => {
      trace.outcome = { kind, collapsed };
      const { validators, isRevalidated } = await work.opened;
      const seen = { kind, collapsed, ...(isRevalidated && { originStatus: 304 }) };
      trace.outcome = seen;
      if (isCurrent(validators)) return { kind: 'current', validators };
      const { result, stored } = await work.finish();
      trace.outcome = isRevalidated ? seen : { ...seen, stored };
      return { kind: 'result', result };
    });
  }

  #find(key: string, trace: RequestTrace): MediaResult | undefined {
    const leave = trace.enter('store');
    const known = this.#parts.store.get(key);
    leave();
    return known;
  }

  #isFresh({ checkedAtMs }: MediaResult): boolean {
    return this.#parts.clock.nowMs() - checkedAtMs < this.#parts.revalidateAfterMs;
  }

  /** Asks the origin; what follows waits until somebody needs the body. */
  #begin(
    request: MediaRequest,
    key: string,
    known: MediaResult | undefined,
    trace: RequestTrace,
    signal: AbortSignal,
  ): Work {
    const { origin, originLimits, store } = this.#parts;
    const opening = trace.time('origin', async () => {
      const object = await openOriginal(origin, request.originKey, originLimits, signal);
      if (known?.originalEtag !== object.etag) return { kind: 'changed', object } as const;
      object.body.destroy();
      const result = { ...known, checkedAtMs: this.#parts.clock.nowMs() };
      const stored = store.set(key, result);
      return { kind: 'unchanged', produced: { result, stored } } as const;
    });
    const opened = opening.then((answer) =>
      answer.kind === 'changed'
        ? { validators: validatorsOf(answer.object, key), isRevalidated: false }
        : { validators: answer.produced.result, isRevalidated: true },
    );
    let produced: Promise<Produced> | undefined;
    const finish = (): Promise<Produced> => {
      produced ??= opening.then((answer) =>
        answer.kind === 'changed'
          ? this.#produce(request, key, answer.object, trace, signal)
          : answer.produced,
      );
      return produced;
    };
    return { opened, finish };
  }

  /** From the opened original to the kept result. */
  async #produce(
    request: MediaRequest,
    key: string,
    object: OriginObject,
    trace: RequestTrace,
    signal: AbortSignal,
  ): Promise<Produced> {
    const original = await trace.time('origin', () =>
      readOriginal(object, this.#parts.originLimits, signal),
    );
    const answer = await this.#transform(request, original, trace, signal);
    const result: MediaResult = {
      ...answer,
      ...validatorsOf(object, key),
      originalEtag: object.etag,
      checkedAtMs: this.#parts.clock.nowMs(),
    };
    return { result, stored: this.#parts.store.set(key, result) };
  }

  /** Facts, limits, plan, render. */
  async #transform(
    request: MediaRequest,
    original: Uint8Array,
    trace: RequestTrace,
    signal: AbortSignal,
  ): Promise<Pick<MediaResult, 'body' | 'mimeType'>> {
    const facts = readImageFacts(original);
    if (facts === undefined) throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
    const untouched = { body: original, mimeType: sourceFormats[facts.format].mimeType };

    const plan = planMedia(facts, request, this.#parts.decodeLimits);
    if (plan.kind === 'passthrough') return untouched;
    if (plan.kind === 'refuse') {
      throw new MediaError('MEDIA_TOO_LARGE', { cause: new Error(plan.reason) });
    }

    const { admission, renderer } = this.#parts;
    const release = await trace.time('queue', () => admission.enter(signal));
    try {
      const body = await trace.time('render', () => renderer.render(original, plan.job));
      return plan.isOnlyQuality && body.byteLength >= original.byteLength
        ? untouched
        : { body, mimeType: outputFormats[plan.job.format].mimeType };
    } finally {
      release();
    }
  }
}

function validatorsOf({ etag, lastModified }: OriginObject, key: string): Validators {
  return { etag: formatEtag(etag, key), lastModified };
}
