import { MediaError } from '../contract/errors.ts';
import type { MediaRequest } from '../contract/media-request.ts';
import type { CacheOutcome } from './cache-outcome.ts';
import type { MediaMaker } from './make-media.ts';
import {
  alreadyMade,
  type IdentifiedMedia,
  kindOf,
  type MediaTask,
  type PreparedMedia,
  type Served,
  type ServeOptions,
  waitForMedia,
} from './media-work.ts';
import { isOriginFailure, type MetadataCache } from './originals/metadata-cache.ts';
import type { IdentifiedOriginal } from './originals/original-reader.ts';
import type { Originals } from './originals/originals.ts';
import type { MediaResult } from './ports.ts';
import type { Charge, Rates } from './rates.ts';
import type { AdmittedRenderer } from './render/admitted-renderer.ts';
import type { RequestTrace } from './request-trace.ts';
import type { NegativeCache } from './results/negative-cache.ts';
import type { Results } from './results/results.ts';
import { type FlightControls, SingleFlight } from './single-flight.ts';

interface MediaServiceParts {
  readonly results: Results;
  readonly negativeCache: NegativeCache;
  readonly metadata: MetadataCache;
  readonly originals: Originals;
  readonly renderer: AdmittedRenderer;
  readonly maker: MediaMaker;
  /** `undefined`: all may have rendered what they like. */
  readonly rates: Rates | undefined;
}

/** Work on one key, and the request that began it. */
interface LedWork {
  readonly identified: Promise<IdentifiedMedia>;
  readonly leader: RequestTrace;
}

/**
 * Serves every media request that may need a transform, in these stages:
 *
 *     parse → look up → join → identify the original → facts → limits → plan → charge → render → respond
 *
 * The first and the last are HTTP's, and `MediaMaker` has those from `facts` to `render`. What is between `look up`
 * and `respond` is done once per key, however many requests wait for it.
 */
export class MediaService {
  readonly #parts: MediaServiceParts;
  readonly #flights = new SingleFlight<LedWork>();

  constructor(parts: MediaServiceParts) {
    this.#parts = parts;
  }

  /** Looks up: a result in memory that is known to be current. Nothing waits before this, or here. */
  findHit(request: MediaRequest, key: string, trace: RequestTrace): MediaResult | undefined {
    const visit = trace.enter('store');
    const known = this.#parts.results.lookUp(key);
    const identity = known && this.#parts.metadata.findFresh(request.originKey);
    if (identity !== undefined && identity.etag === known?.originalEtag) {
      visit.endUnseen();
      trace.outcome = { kind: 'hit' };
      return known;
    }
    visit.span?.setAttributes({
      'darkroom.memory': 'results',
      'darkroom.found': known !== undefined,
    });
    visit.end();
    return undefined;
  }

  /**
   * Serves what `findHit` has not found: joins the work on it, or begins it.
   *
   * @throws MediaError of any stage; `options.signal.reason` when the client has gone
   */
  async serve(request: MediaRequest, key: string, options: ServeOptions): Promise<Served> {
    const { results, negativeCache, metadata } = this.#parts;
    const { signal, trace } = options;
    const refusal = negativeCache.find(key);
    if (refusal !== undefined || metadata.isMissing(request.originKey)) {
      trace.outcome = { kind: 'hit' };
      throw refusal ?? new MediaError('UNKNOWN_MEDIA');
    }
    const known = results.get(key);
    trace.outcome = { kind: kindOf(known) };
    const begin = (controls: FlightControls): LedWork => {
      if (known === undefined) this.#checkShare(request, key, options);
      return {
        identified: this.#identify({ ...controls, request, key, known, trace }),
        leader: trace,
      };
    };
    return this.#flights.run(key, signal, begin, (work, collapsed) => {
      const note = (outcome: CacheOutcome): void => {
        trace.outcome = outcome.kind === 'hit' ? outcome : { ...outcome, collapsed };
      };
      note({ kind: kindOf(known) });
      const charge = (costMs: number): Charge | undefined => {
        // A refusal is this request's own, whatever it has waited for with others.
        trace.outcome = { kind: kindOf(known) };
        const charged = this.#parts.rates?.charge(options.client(), costMs);
        note({ kind: kindOf(known) });
        return charged;
      };
      const payer = { trace, charge };
      const wait = (): Promise<Served> => waitForMedia(work.identified, options, payer, note);
      return collapsed ? trace.show('join', wait, work.leader) : wait();
    });
  }

  /**
   * Refuses a request before the origin is asked, where nothing but a render can come of it, whose cost is known.
   *
   * @throws MediaError `RATE_LIMITED`
   */
  #checkShare(request: MediaRequest, key: string, { isCurrent, client }: ServeOptions): void {
    const { metadata, rates, results } = this.#parts;
    const identity = metadata.find(request.originKey);
    if (rates === undefined || results.isPersistent || identity === undefined) return;
    if (isCurrent(() => results.validatorsOf(identity, key), false)) return;
    const plan = this.#parts.maker.foresee(request, identity);
    if (plan !== undefined) rates.check(client(), plan.cost.typicalMs);
  }

  /** Identifies the original. What the origin confirms is served on; while it fails, what was right last. */
  async #identify(task: MediaTask): Promise<IdentifiedMedia> {
    const { metadata, negativeCache, originals, renderer, results } = this.#parts;
    const { key, known, request, signal, trace } = task;
    const stale = metadata.hasFailed(request.originKey) && (await this.#findStale(task));
    if (stale) return alreadyMade(stale, { kind: 'hit', detail: 'stale-if-error' });

    const original = originals.open(request, signal);
    let identified: IdentifiedOriginal;
    try {
      // No more than the identity, where that may do; in a crowd, the first frames of what may be an animation.
      const isEnough = known !== undefined || results.isPersistent;
      const approach = isEnough ? 'identity' : 'whole';
      const isCrowded = renderer.isCrowdedFor(request);
      identified = await original.identify(isCrowded ? 'first frames' : approach, trace);
    } catch (error) {
      const last = isOriginFailure(error) && (await this.#findStale(task));
      if (last) return alreadyMade(last, { kind: 'stale', detail: 'stale-if-error' });
      // What is on another site is read whole to be identified, and may be refused by that.
      if (!task.isRetired()) negativeCache.note(key, request.originKey, error);
      throw error; // UNKNOWN_MEDIA, ORIGIN_ERROR, ORIGIN_TIMEOUT, OVERLOADED
    }
    const { identity, wasAsked } = identified;
    if (known?.originalEtag === identity.etag) {
      return alreadyMade(known, wasAsked ? { kind: 'stale', originStatus: 304 } : { kind: 'hit' });
    }
    let prepared: Promise<PreparedMedia> | undefined;
    return {
      validators: () => this.#parts.results.validatorsOf(identity, key),
      outcome: wasAsked ? { kind: kindOf(known) } : { kind: 'hit' },
      isMade: false,
      prepare: () => {
        prepared ??= this.#parts.maker.prepare(task, original, identified);
        return prepared;
      },
    };
  }

  /** What was right when the origin could be asked last. */
  async #findStale(task: MediaTask): Promise<MediaResult | undefined> {
    const identity = this.#parts.metadata.find(task.request.originKey);
    return identity && this.#parts.results.find(task, identity);
  }

  /** How long what is on another site may be kept, in seconds; `undefined` where the site's word does not hold now. */
  maxAgeOf({ originKey }: MediaRequest): number | undefined {
    const isFresh = this.#parts.metadata.findFresh(originKey) !== undefined;
    const known = isFresh ? this.#parts.metadata.findOfSite(originKey) : undefined;
    return known && known.site.freshForMs / 1000;
  }

  /** Lets no more requests join the work on keys that fit, and keeps nothing of it: they were purged. */
  retire(fits: (key: string) => boolean): void {
    this.#flights.retire(fits);
  }
}
