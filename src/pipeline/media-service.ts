import { type MediaRequest, resultKey } from '../media/media-request.ts';
import { unlessAborted } from './abort.ts';
import {
  type FoundOriginal,
  findOriginal,
  findOriginalByPrefix,
  type OriginalIdentity,
  type OriginalSource,
} from './held-original.ts';
import type { Clock, MediaResult, ResultCache } from './ports.ts';
import type { RefusalMemory } from './refusal-memory.ts';
import type { RequestTrace } from './request-trace.ts';
import { type FlightControls, SingleFlight } from './single-flight.ts';
import type { Transformer, TransformOptions } from './transformer.ts';
import { formatEtag, type Validators } from './validators.ts';

/** What the service is built from. */
export interface MediaServiceParts {
  readonly store: ResultCache;
  readonly refusals: RefusalMemory;
  readonly originals: OriginalSource;
  readonly transformer: Transformer;
  readonly clock: Clock;
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

/** Serves every media request that a transform may stand behind: store, origin, transform. */
export class MediaService {
  readonly #parts: MediaServiceParts;
  readonly #flights = new SingleFlight<Work>();

  constructor(parts: MediaServiceParts) {
    this.#parts = parts;
  }

  /**
   * Serves a request from the store, or by transforming its original.
   *
   * @throws MediaError of the origin, the limits or the renderer; `options.signal.reason` when the
   *   client has gone
   */
  async serve(request: MediaRequest, options: ServeOptions): Promise<Served> {
    const { signal, trace, isCurrent } = options;
    const key = resultKey(request);
    const known = this.#lookUp(key, trace);
    if (known !== undefined && this.#isFresh(known)) {
      trace.outcome = { kind: 'hit' };
      return isCurrent(known)
        ? { kind: 'current', validators: known }
        : { kind: 'result', result: known };
    }

    const refusal = this.#parts.refusals.find(key);
    if (refusal !== undefined) {
      trace.outcome = { kind: 'hit' };
      throw refusal;
    }

    const kind: 'miss' | 'stale' = known === undefined ? 'miss' : 'stale';
    trace.outcome = { kind };
    const begin = (controls: FlightControls): Work =>
      this.#begin(request, key, known, { ...controls, trace });
    return this.#flights.run(key, signal, begin, async (work, collapsed) => {
      trace.outcome = { kind, collapsed };
      const { validators, isRevalidated } = await unlessAborted(work.opened, signal);
      const seen = { kind, collapsed, ...(isRevalidated && { originStatus: 304 }) };
      trace.outcome = seen;
      if (isCurrent(validators)) return { kind: 'current', validators };
      const { result, stored } = await unlessAborted(work.finish(), signal);
      trace.outcome = isRevalidated ? seen : { ...seen, stored };
      return { kind: 'result', result };
    });
  }

  #lookUp(key: string, trace: RequestTrace): MediaResult | undefined {
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
    options: TransformOptions,
  ): Work {
    const { store } = this.#parts;
    const opening = options.trace.time('origin', async () => {
      const original = await this.#find(request, options.signal);
      if (known?.originalEtag !== original.identity.etag) {
        return { kind: 'changed', original } as const;
      }
      original.discard();
      const result = { ...known, checkedAtMs: this.#parts.clock.nowMs() };
      const stored = store.set(key, result);
      return { kind: 'unchanged', produced: { result, stored } } as const;
    });
    const opened = opening.then((answer) =>
      answer.kind === 'changed'
        ? { validators: validatorsOf(answer.original.identity, key), isRevalidated: false }
        : { validators: answer.produced.result, isRevalidated: true },
    );
    let produced: Promise<Produced> | undefined;
    const finish = (): Promise<Produced> => {
      produced ??= opening.then((answer) =>
        answer.kind === 'changed'
          ? this.#produce(request, key, answer.original, options)
          : answer.produced,
      );
      return produced;
    };
    return { opened, finish };
  }

  /** In a crowd, by the first bytes of what may be an animation. */
  #find(request: MediaRequest, signal: AbortSignal): Promise<FoundOriginal> {
    const { originals, transformer } = this.#parts;
    const { originKey } = request;
    return transformer.isCrowdedFor(request)
      ? findOriginalByPrefix(originals, originKey, signal, (prefix) =>
          transformer.judge(request, prefix),
        )
      : findOriginal(originals, originKey, signal);
  }

  /** From the found original to the kept result; what cannot be made of it is kept in mind as well. */
  async #produce(
    request: MediaRequest,
    key: string,
    found: FoundOriginal,
    options: TransformOptions,
  ): Promise<Produced> {
    const { clock, refusals, store, transformer } = this.#parts;
    try {
      const original = await options.trace.time('origin', () => found.hold());
      try {
        const result: MediaResult = {
          ...(await transformer.transform(request, original, options)),
          ...validatorsOf(original.identity, key),
          originalEtag: original.identity.etag,
          checkedAtMs: clock.nowMs(),
        };
        return { result, stored: store.set(key, result) };
      } finally {
        original.release();
      }
    } catch (error) {
      refusals.note(key, request.originKey, error);
      throw error;
    }
  }
}

function validatorsOf({ etag, lastModified }: OriginalIdentity, key: string): Validators {
  return { etag: formatEtag(etag, key), lastModified };
}
