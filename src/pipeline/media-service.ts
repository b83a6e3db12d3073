import { MediaError } from '../media/errors.ts';
import { type MediaRequest, resultKey } from '../media/media-request.ts';
import { unlessAborted } from './abort.ts';
import { kindOf, MediaMaker, type MediaMakerParts, type MediaWork } from './media-maker.ts';
import type { CacheOutcome } from './outcome.ts';
import type { MediaResult } from './ports.ts';
import type { RequestTrace } from './request-trace.ts';
import { type FlightControls, SingleFlight } from './single-flight.ts';
import type { Validators } from './validators.ts';

/** What one request brings along. */
export interface ServeOptions {
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal;
  readonly trace: RequestTrace;
  /**
   * Whether the client has this state already, so that no body is needed; `isMade` tells whether there is
   * one yet. Who needs none only if there is one is asked again then.
   */
  readonly isCurrent: (validators: Validators, isMade: boolean) => boolean;
}

/** An answer: a body, or the news that the client's is current. */
export type Served =
  | { readonly kind: 'current'; readonly validators: Validators }
  | { readonly kind: 'result'; readonly result: MediaResult };

/** Serves every media request that a transform may stand behind: results, origin, transform. */
export class MediaService {
  readonly #parts: MediaMakerParts;
  readonly #maker: MediaMaker;
  readonly #flights = new SingleFlight<MediaWork>();

  constructor(parts: MediaMakerParts) {
    this.#parts = parts;
    this.#maker = new MediaMaker(parts);
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
    const task = { request, key, known, epoch: versions.epochOf(request.originKey) };
    const begin = (controls: FlightControls): MediaWork =>
      this.#maker.begin(task, { ...controls, trace });
    // Nobody joins what was begun before a purge.
    return this.#flights.run(`${task.epoch} ${key}`, signal, begin, async (work, collapsed) => {
      const note = (outcome: CacheOutcome): void => {
        trace.outcome = outcome.kind === 'hit' ? outcome : { ...outcome, collapsed };
      };
      note({ kind: kindOf(known) });
      const { validators, outcome, isMade } = await unlessAborted(work.opened, signal);
      const isEnough = isCurrent(validators, isMade);
      // A state that is known is a hit for whoever needs no more. To make the body is none, if it fails, too.
      if (isEnough || isMade) note(outcome);
      if (isEnough) return { kind: 'current', validators };
      const produced = await unlessAborted(work.finish(), signal);
      note(produced.outcome);
      return answerWith(produced.result, isCurrent);
    });
  }

  /**
   * An answer in memory that is current, for whoever needs no more than that.
   *
   * @param key the request's `resultKey`
   */
  findHit(request: MediaRequest, key: string): MediaResult | undefined {
    const known = this.#parts.results.get(key);
    return known !== undefined && this.#isFresh(known, request) ? known : undefined;
  }

  #lookUp(key: string, trace: RequestTrace): MediaResult | undefined {
    const leave = trace.enter('store');
    const known = this.#parts.results.get(key);
    leave();
    const { meter } = this.#parts;
    if (meter !== undefined) meter.lookUps.results[known === undefined ? 'missed' : 'found'] += 1;
    return known;
  }

  #isFresh({ originalEtag }: MediaResult, { originKey }: MediaRequest): boolean {
    const version = this.#parts.versions.find(originKey);
    return version?.isFresh === true && version.identity.etag === originalEtag;
  }
}

function answerWith(result: MediaResult, isCurrent: ServeOptions['isCurrent']): Served {
  return isCurrent(result, true)
    ? { kind: 'current', validators: result }
    : { kind: 'result', result };
}
