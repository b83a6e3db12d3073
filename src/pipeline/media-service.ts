import { MediaError } from '../contract/errors.ts';
import { type MediaRequest, resultKey } from '../contract/media-request.ts';
import { unlessAborted } from './abort.ts';
import type { CacheOutcome } from './cache-outcome.ts';
import { kindOf, MediaMaker, type MediaMakerParts, type MediaWork } from './media-maker.ts';
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

/** Work on one key, and the request that began it. */
interface LedWork extends MediaWork {
  readonly leader: RequestTrace;
}

/** Serves every media request that a transform may stand behind: results, origin, transform. */
export class MediaService {
  readonly #parts: MediaMakerParts;
  readonly #maker: MediaMaker;
  readonly #flights = new SingleFlight<LedWork>();

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
    const visit = trace.enter('store');
    const known = this.#lookUp(key);
    if (known !== undefined && this.#isFresh(known, request)) {
      visit.leaveUnseen();
      trace.outcome = { kind: 'hit' };
      return answerWith(known, isCurrent);
    }

    visit.note({ memory: 'results', isFound: known !== undefined });
    visit.leave();

    const refusal = refusals.find(key);
    if (refusal !== undefined || versions.isGone(request.originKey)) {
      trace.outcome = { kind: 'hit' };
      throw refusal ?? new MediaError('UNKNOWN_MEDIA');
    }

    trace.outcome = { kind: kindOf(known) };
    const task = { request, key, known, epoch: versions.epochOf(request.originKey) };
    const begin = (controls: FlightControls): LedWork => ({
      ...this.#maker.begin(task, { ...controls, trace }),
      leader: trace,
    });
    // Nobody joins what was begun before a purge.
    return this.#flights.run(`${task.epoch} ${key}`, signal, begin, (work, collapsed) => {
      const note = (outcome: CacheOutcome): void => {
        trace.outcome = outcome.kind === 'hit' ? outcome : { ...outcome, collapsed };
      };
      note({ kind: kindOf(known) });
      const take = (): Promise<Served> => takeFrom(work, options, note);
      return collapsed ? trace.show('join', take, work.leader) : take();
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

  #lookUp(key: string): MediaResult | undefined {
    const known = this.#parts.results.get(key);
    const { meter } = this.#parts;
    if (meter !== undefined) meter.lookUps.results[known === undefined ? 'missed' : 'found'] += 1;
    return known;
  }

  #isFresh({ originalEtag }: MediaResult, { originKey }: MediaRequest): boolean {
    const version = this.#parts.versions.find(originKey);
    return version?.isFresh === true && version.identity.etag === originalEtag;
  }
}

/** Waits for as much of the work as this request needs. */
async function takeFrom(
  work: MediaWork,
  { signal, isCurrent }: ServeOptions,
  note: (outcome: CacheOutcome) => void,
): Promise<Served> {
  const { validators, outcome, isMade } = await unlessAborted(work.opened, signal);
  const isEnough = isCurrent(validators, isMade);
  // A state that is known is a hit for whoever needs no more. To make the body is none, if it fails, too.
  if (isEnough || isMade) note(outcome);
  if (isEnough) return { kind: 'current', validators };
  const produced = await unlessAborted(work.finish(), signal);
  note(produced.outcome);
  return answerWith(produced.result, isCurrent);
}

function answerWith(result: MediaResult, isCurrent: ServeOptions['isCurrent']): Served {
  return isCurrent(result, true)
    ? { kind: 'current', validators: result }
    : { kind: 'result', result };
}
