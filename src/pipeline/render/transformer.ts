import { MediaError } from '../../contract/errors.ts';
import { outputFormats, sourceFormats } from '../../contract/image-formats.ts';
import type { MediaRequest } from '../../contract/media-request.ts';
import type { ImageFacts } from '../../formats/image-facts.ts';
import { peekAnimation, readImageFacts } from '../../formats/read-image-facts.ts';
import type { HeldOriginal } from '../originals/found-original.ts';
import type { Lane, Renderer, StoredResult } from '../ports.ts';
import type { RequestTrace, SpanDetails } from '../request-trace.ts';
import type { NegativeCache } from '../results/negative-cache.ts';
import type { FlightControls } from '../single-flight.ts';

import type { Admission, Demand } from './admission.ts';
import { type Plan, planMedia, type RenderLimits } from './plan.ts';
import { laneOf } from './render-cost.ts';
import type { RenderJob } from './render-job.ts';

/** What transforms are made with. */
export interface TransformerParts {
  readonly renderer: Renderer;
  readonly admission: Admission;
  readonly refusals: NegativeCache;
  readonly limits: RenderLimits;
}

/** What belongs to one transform; its signal aborts when nobody waits for the result any more. */
export interface TransformOptions extends FlightControls {
  readonly trace: RequestTrace;
  /** Whether what is learned of the original still holds: not after a purge. */
  readonly isCurrent: () => boolean;
}

/** The answer's body, and what it is. */
export interface Transformed extends StoredResult {
  /** Whether the body is the original's own. */
  readonly isOriginal: boolean;
}

type RenderPlan = Extract<Plan, { readonly kind: 'render' }>;

/** One render, and what it is made from. */
interface Run extends Demand {
  readonly job: RenderJob;
  readonly originKey: string;
  readonly original: HeldOriginal;
}

/** A render that was estimated to be light, and is not. */
class TooSlowForLane extends Error {
  override readonly name = 'TooSlowForLane';
}

/** Time for a render in the light lane, in milliseconds: thirty times as much as is foreseen at most. */
const LIGHT_TIMEOUT_MS = 3_000;

/** From an original's bytes to an answer's: facts, limits, plan, render. */
export class Transformer {
  readonly #parts: TransformerParts;

  constructor(parts: TransformerParts) {
    this.#parts = parts;
  }

  /**
   * Gives the original what the request asks for; passes it through where that is nothing.
   *
   * @throws MediaError `UNSUPPORTED_MEDIA_TYPE`, `MEDIA_TOO_LARGE`, `UNPROCESSABLE_MEDIA`,
   *   `OVERLOADED`, `TRANSFORM_TIMEOUT`; or `options.signal.reason`
   */
  async transform(
    request: MediaRequest,
    original: HeldOriginal,
    options: TransformOptions,
  ): Promise<Transformed> {
    const facts = readFacts(original.bytes, options.trace);
    const untouched = {
      body: original.bytes,
      mimeType: sourceFormats[facts.format].mimeType,
      isOriginal: true,
    };
    const plan = planMedia(facts, request, this.#parts.limits);
    switch (plan.kind) {
      case 'passthrough':
        return untouched;
      case 'refuse':
        throw new MediaError('MEDIA_TOO_LARGE', { cause: new Error(plan.reason) });
      case 'render': {
        const body = await this.#render(request.originKey, original, plan, options);
        return plan.isOnlyQuality && body.byteLength >= original.bytes.byteLength
          ? untouched
          : { body, mimeType: outputFormats[plan.job.format].mimeType, isOriginal: false };
      }
    }
  }

  /** Whether a request is likely to be turned away, if its original is an animation. */
  isCrowdedFor({ isAnimated, format }: MediaRequest): boolean {
    const mayAnimate = isAnimated && (format === undefined || outputFormats[format].canAnimate);
    return mayAnimate && this.#parts.admission.isCrowded('heavy');
  }

  /**
   * Turns a request away, if its original's first bytes tell that `transform` would do that: in a crowd
   * of animations, to read them whole is most of what they cost.
   *
   * @throws MediaError `OVERLOADED`
   */
  judge(request: MediaRequest, prefix: Uint8Array): void {
    const { admission, limits, refusals } = this.#parts;
    const facts = peekAnimation(prefix);
    if (facts === undefined) return;
    const plan = planMedia(facts, request, limits);
    if (plan.kind !== 'render' || laneOf(plan.cost, plan.job) !== 'heavy') return;
    const mayBeGuest = !refusals.isSlow(request.originKey);
    admission.check('heavy', { costMs: plan.cost.typicalMs, mayBeGuest });
  }

  /**
   * What looks light and is not (thousands of scans in a JPEG, say) would keep the others of the light
   * lane waiting: after a while it begins anew among the heavy ones.
   */
  async #render(
    originKey: string,
    original: HeldOriginal,
    { job, cost }: RenderPlan,
    options: TransformOptions,
  ): Promise<Uint8Array> {
    const { refusals } = this.#parts;
    const run = { originKey, original, job, costMs: cost.typicalMs };
    if (!refusals.isSlow(originKey)) {
      try {
        return await this.#renderIn(laneOf(cost, job), { ...run, mayBeGuest: true }, options);
      } catch (error) {
        if (!(error instanceof TooSlowForLane)) throw error;
      }
    }
    return this.#renderIn('heavy', { ...run, mayBeGuest: false }, options);
  }

  /**
   * A CPU slot is held from here to the end of encoding.
   *
   * @throws TooSlowForLane if a render in a light slot has taken too long for it
   */
  async #renderIn(
    wanted: Lane,
    run: Run,
    { signal, keep, trace, isCurrent }: TransformOptions,
  ): Promise<Uint8Array> {
    const { admission, limits, refusals, renderer } = this.#parts;
    const { originKey, original, job } = run;
    signal.throwIfAborted();
    original.assign(wanted);
    const slot = await trace.time(
      'queue',
      (visit) => {
        visit.note({ lane: wanted });
        return admission.enter(wanted, run, signal);
      },
      (entered) => ({ slot: entered.lane }),
    );
    let isTelling = false;
    try {
      signal.throwIfAborted();
      // Others of the same original may have been ahead in the line.
      refusals.checkOriginal(originKey);
      const { lane } = slot;
      const isLight = wanted === 'light' || lane === 'light';
      if (isLight && refusals.isSlow(originKey)) throw new TooSlowForLane();
      const timeoutMs = Math.min(limits.timeoutMs, lane === 'light' ? LIGHT_TIMEOUT_MS : Infinity);
      const rendering = trace.time(
        'render',
        (visit) => {
          visit.note({ lane: wanted, slot: lane, ...describeJob(job) });
          return renderer.render(original.bytes, job, { lane, timeoutMs, signal });
        },
        ({ byteLength }) => ({ bytes: byteLength }),
      );
      // For the store, whoever leaves: a new worker would cost more than what is left of it.
      if (isLight) keep(rendering);
      const body = await rendering;
      isTelling = true;
      return body;
    } catch (error) {
      isTelling = isTimeout(error);
      if (slot.lane === 'heavy' || !isTimeout(error)) throw error;
      if (isCurrent()) refusals.noteSlow(originKey);
      // The heavy lane would give it no more time than it had.
      if (limits.timeoutMs <= LIGHT_TIMEOUT_MS) throw error;
      throw new TooSlowForLane();
    } finally {
      slot.leave(isTelling);
    }
  }
}

/** @throws MediaError `UNSUPPORTED_MEDIA_TYPE` */
function readFacts(bytes: Uint8Array, trace: RequestTrace): ImageFacts {
  const span = trace.begin('facts');
  try {
    const facts = readImageFacts(bytes);
    if (facts === undefined) throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
    const { format, widthPx, heightPx, frames } = facts;
    span.note({ bytes: bytes.byteLength, format, widthPx, heightPx, frames });
    span.end();
    return facts;
  } catch (error) {
    span.end(error);
    throw error;
  }
}

function describeJob({ animation, format, size }: RenderJob): SpanDetails {
  return { format, ...size, frames: animation?.delaysMs.length ?? 1 };
}

function isTimeout(error: unknown): boolean {
  return error instanceof MediaError && error.code === 'TRANSFORM_TIMEOUT';
}
