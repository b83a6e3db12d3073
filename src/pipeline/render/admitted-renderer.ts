import { MediaError } from '../../contract/errors.ts';
import { outputFormats } from '../../contract/image-formats.ts';
import type { MediaRequest } from '../../contract/media-request.ts';
import { peekAnimation } from '../../formats/read-image-facts.ts';
import type { MediaTask } from '../media-work.ts';
import type { HeldOriginal } from '../originals/original-reader.ts';
import type { Lane, Renderer, RenderOptions, StoredResult } from '../ports.ts';
import type { Charge } from '../rates.ts';
import type { NegativeCache } from '../results/negative-cache.ts';
import type { Admission } from './admission.ts';
import { planMedia, type RenderLimits, type RenderPlan } from './plan.ts';
import { laneOf } from './render-cost.ts';

/** What renders are made with. */
export interface AdmittedRendererParts {
  readonly renderer: Renderer;
  readonly admission: Admission;
  readonly negativeCache: NegativeCache;
  readonly limits: RenderLimits;
}

/** A render that was estimated to be light, and is not. */
class TooSlowForLane extends Error {
  override readonly name = 'TooSlowForLane';
}

/** A light render in a borrowed slot was kept from the cores for too long. */
class StarvedBorrower extends Error {
  override readonly name = 'StarvedBorrower';
}

/** Time by the clock for a render in a borrowed slot, in milliseconds: ten times as much as is foreseen at most. */
const BORROWER_TIMEOUT_MS = 1_000;

/** CPU time for a render in the light lane, in milliseconds: thirty times as much as is foreseen at most. */
const LIGHT_TIMEOUT_MS = 3_000;

/** Where a busy machine does not give it that, it is begun anew after this part of the deadline. */
const MAX_LIGHT_SHARE = 1 / 2;

function timesIn(
  lane: Lane,
  { timeoutMs }: RenderLimits,
): Pick<RenderOptions, 'timeoutMs' | 'starvedTimeoutMs'> {
  if (lane === 'heavy') return { timeoutMs };
  return {
    timeoutMs: Math.min(timeoutMs, LIGHT_TIMEOUT_MS),
    starvedTimeoutMs: timeoutMs * MAX_LIGHT_SHARE,
  };
}

/** Renders when there is a CPU slot for it, and says beforehand whether there will be none in time. */
export class AdmittedRenderer {
  readonly #parts: AdmittedRendererParts;

  constructor(parts: AdmittedRendererParts) {
    this.#parts = parts;
  }

  /** Whether a request is likely to be refused, if its original is an animation. */
  isCrowdedFor({ isAnimated, format }: MediaRequest): boolean {
    const mayAnimate = isAnimated && (format === undefined || outputFormats[format].canAnimate);
    return mayAnimate && this.#parts.admission.isCrowded('heavy');
  }

  /**
   * Refuses a request whose original is an animation by its first bytes, if `render` would: in a crowd of
   * animations, reading them whole is most of what they cost.
   *
   * @throws MediaError `OVERLOADED`
   */
  checkAdmission(request: MediaRequest, prefix: Uint8Array): void {
    const { admission, limits } = this.#parts;
    const facts = peekAnimation(prefix);
    if (facts === undefined) return;
    const plan = planMedia(facts, request, limits);
    if (plan.kind !== 'render' || laneOf(plan.cost, plan.job) !== 'heavy') return;
    admission.check('heavy', plan.cost.typicalMs);
  }

  /**
   * Waits for a CPU slot, and renders. What looks light and is not (thousands of scans in a JPEG, say) would
   * keep the rest of the light lane waiting: after a while it begins anew in the heavy one.
   *
   * @param charge is told how long it took, each time that it began
   * @returns `undefined` where only the quality was to change, and the result is no smaller than the original
   * @throws MediaError `UNPROCESSABLE_MEDIA`, `MEDIA_TOO_LARGE`, `OVERLOADED`, `TRANSFORM_TIMEOUT`; or
   *   `task.signal.reason`
   */
  async render(
    plan: RenderPlan,
    original: HeldOriginal,
    task: MediaTask,
    charge: Charge | undefined,
  ): Promise<StoredResult | undefined> {
    // To wait for a slot would be for nothing.
    this.#parts.negativeCache.checkOriginal(task.request.originKey);
    const body = await this.#renderInLane(plan, original, task, charge);
    if (plan.isOnlyQuality && body.byteLength >= original.bytes.byteLength) return undefined;
    return { body, mimeType: outputFormats[plan.job.format].mimeType };
  }

  async #renderInLane(
    plan: RenderPlan,
    original: HeldOriginal,
    task: MediaTask,
    charge: Charge | undefined,
  ): Promise<Uint8Array> {
    if (!this.#parts.negativeCache.isSlow(task.request.originKey)) {
      try {
        return await this.#renderIn(laneOf(plan.cost, plan.job), plan, original, task, charge);
      } catch (error) {
        // Nothing is lent now, so it has a light process for itself.
        if (error instanceof StarvedBorrower)
          return this.#renderInLane(plan, original, task, charge);
        if (!(error instanceof TooSlowForLane)) throw error;
      }
    }
    // What it costs is not known: more than the time that it has had.
    const typicalMs = Math.max(plan.cost.typicalMs, LIGHT_TIMEOUT_MS);
    const costly = { ...plan, cost: { ...plan.cost, typicalMs } };
    return this.#renderIn('heavy', costly, original, task, charge);
  }

  /**
   * A CPU slot is held from here to the end of encoding.
   *
   * @throws TooSlowForLane if a light render has taken too long for one, StarvedBorrower if it was kept from the cores
   */
  async #renderIn(
    lane: Lane,
    { job, cost }: RenderPlan,
    original: HeldOriginal,
    { request, signal, keep, trace, isRetired }: MediaTask,
    charge: Charge | undefined,
  ): Promise<Uint8Array> {
    const { admission, limits, negativeCache, renderer } = this.#parts;
    const { originKey } = request;
    signal.throwIfAborted();
    original.assign(lane);
    const slot = await trace.time('queue', (visit) => {
      visit.span?.setAttributes({ 'darkroom.lane': lane });
      return admission.enter(lane, cost.typicalMs, signal);
    });
    let [hasBegun, isMeasured] = [false, false];
    try {
      signal.throwIfAborted();
      // Others of the same original may have been ahead in the queue.
      negativeCache.checkOriginal(originKey);
      if (lane === 'light' && negativeCache.isSlow(originKey)) throw new TooSlowForLane();
      const times =
        slot.lane === lane
          ? timesIn(lane, limits)
          : { timeoutMs: Math.min(limits.timeoutMs, BORROWER_TIMEOUT_MS) };
      hasBegun = true;
      const rendering = trace.time(
        'render',
        (visit) => {
          visit.span?.setAttributes({
            'darkroom.lane': slot.lane,
            'darkroom.format': job.format,
            'darkroom.width': job.size.widthPx,
            'darkroom.height': job.size.heightPx,
            'darkroom.frames': job.animation?.delaysMs.length ?? 1,
          });
          return renderer.render(original.bytes, job, { lane: slot.lane, signal, ...times });
        },
        ({ byteLength }) => ({ 'darkroom.bytes': byteLength }),
      );
      // It goes on when its clients leave: a new worker would cost more than what is left of it.
      if (lane === 'light') keep(rendering);
      const body = await rendering;
      isMeasured = true;
      return body;
    } catch (error) {
      isMeasured = isTimeout(error);
      const isBorrowed = slot.lane !== lane && limits.timeoutMs > BORROWER_TIMEOUT_MS;
      if (isMeasured && isBorrowed) throw new StarvedBorrower();
      if (lane === 'heavy' || !isTimeout(error)) throw error;
      if (!isRetired()) negativeCache.noteSlow(originKey);
      // The heavy lane would give it no more time than it had.
      if (limits.timeoutMs <= LIGHT_TIMEOUT_MS) throw error;
      throw new TooSlowForLane();
    } finally {
      const heldMs = slot.leave(isMeasured);
      if (hasBegun) charge?.addRun(heldMs);
    }
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof MediaError && error.code === 'TRANSFORM_TIMEOUT';
}
