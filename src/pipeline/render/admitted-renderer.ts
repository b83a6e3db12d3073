import { MediaError } from '../../contract/errors.ts';
import { outputFormats } from '../../contract/image-formats.ts';
import type { MediaTask } from '../media-task.ts';
import type { HeldOriginal } from '../originals/originals.ts';
import type { OriginalRecords } from '../originals/records.ts';
import type { Lane, RenderBounds, StoredResult } from '../ports.ts';
import type { Charge } from '../rates.ts';
import type { Admission } from './admission.ts';
import type { RenderLimits, RenderPlan } from './plan.ts';
import { laneOf } from './render-cost.ts';
import type { RenderJob } from './render-job.ts';

/** Parts that renders are made with. */
export interface AdmittedRendererParts {
  readonly admission: Admission;
  readonly records: OriginalRecords;
  readonly limits: RenderLimits;
}

/** A render that was estimated to be light, and is not. */
class TooSlowForLane extends Error {
  override readonly name = 'TooSlowForLane';
}

/** CPU time for a render in the light lane, in milliseconds: thirty times as much as is foreseen at most. */
const LIGHT_TIMEOUT_MS = 3_000;

/** Where a busy machine does not give it that, it is begun anew after this part of the deadline. */
const MAX_LIGHT_SHARE = 1 / 2;

/** Renders when there is a CPU slot for it. */
export class AdmittedRenderer {
  readonly #parts: AdmittedRendererParts;

  constructor(parts: AdmittedRendererParts) {
    this.#parts = parts;
  }

  /**
   * Waits for a CPU slot, and renders. A render that looks light and is not (thousands of scans in a JPEG, say) would
   * keep the rest of the light lane waiting: after a while it begins anew in the heavy one.
   *
   * @param charge is told how long it took, each time that it began
   * @returns `undefined` where only the quality was to change, and the result is no smaller than the original
   * @throws MediaError `UNPROCESSABLE_MEDIA`, `MEDIA_TOO_LARGE`, `OVERLOADED`, `TRANSFORM_TIMEOUT`; or
   *   `task.signal.reason`
   */
  async render(
    plan: RenderPlan,
    held: HeldOriginal,
    task: MediaTask,
    charge: Charge | undefined,
  ): Promise<StoredResult | undefined> {
    // Fails before queueing: the original timed out or crashed workers lately.
    this.#parts.records.throwIfBlamed(task.request.originKey);
    const body = await this.#renderInLane(plan, held, task, charge);
    if (plan.isOnlyQuality && body.byteLength >= held.bytes.byteLength) return undefined;
    return { body, mimeType: outputFormats[plan.job.format].mimeType };
  }

  async #renderInLane(
    plan: RenderPlan,
    held: HeldOriginal,
    task: MediaTask,
    charge: Charge | undefined,
  ): Promise<Uint8Array> {
    if (!this.#parts.records.isSlow(task.request.originKey)) {
      try {
        return await this.#renderIn(laneOf(plan.cost, plan.job), plan, held, task, charge);
      } catch (error) {
        if (!(error instanceof TooSlowForLane)) throw error;
      }
    }
    // What it costs is not known: more than the time that it has had.
    const typicalMs = Math.max(plan.cost.typicalMs, LIGHT_TIMEOUT_MS);
    const costly = { ...plan, cost: { ...plan.cost, typicalMs } };
    return this.#renderIn('heavy', costly, held, task, charge);
  }

  /**
   * Renders in a slot, which is held from here to the end of encoding.
   *
   * @throws TooSlowForLane if a light render has taken too long for one
   */
  async #renderIn(
    lane: Lane,
    { job, cost }: RenderPlan,
    held: HeldOriginal,
    { request, original, signal, keep, trace }: MediaTask,
    charge: Charge | undefined,
  ): Promise<Uint8Array> {
    const { admission, limits, records } = this.#parts;
    const { originKey } = request;
    signal.throwIfAborted();
    held.assign(lane);
    const { slot, leave } = await trace.stage('queue', (span) => {
      span?.setAttributes({ 'darkroom.lane': lane });
      return admission.enter(lane, cost.typicalMs, signal);
    });
    let [hasBegun, isMeasured] = [false, false];
    try {
      signal.throwIfAborted();
      // Others of the same original may have been ahead in the queue.
      records.throwIfBlamed(originKey);
      if (lane === 'light' && records.isSlow(originKey)) throw new TooSlowForLane();
      hasBegun = true;
      const rendering = trace.stage('render', async (span) => {
        span?.setAttributes(describeJob(lane, job));
        const bounds = { signal, ...timesIn(lane, limits) };
        const rendered = await slot.render(held.bytes, job, bounds);
        span?.setAttribute('darkroom.bytes', rendered.byteLength);
        return rendered;
      });
      // It goes on when its clients leave: a new worker would cost more than what is left of it.
      if (lane === 'light') keep(rendering);
      const body = await rendering;
      isMeasured = true;
      return body;
    } catch (error) {
      isMeasured = isTimeout(error);
      if (lane === 'heavy' || !isTimeout(error)) throw error;
      if (!original.isOutdated) records.noteSlow(originKey);
      // The heavy lane would give it no more time than it had.
      if (limits.timeoutMs <= LIGHT_TIMEOUT_MS) throw error;
      throw new TooSlowForLane();
    } finally {
      const heldMs = leave(isMeasured);
      if (hasBegun) charge?.addRun(heldMs);
    }
  }
}

function timesIn(lane: Lane, { timeoutMs }: RenderLimits): Omit<RenderBounds, 'signal'> {
  if (lane === 'heavy') return { timeoutMs };
  return {
    timeoutMs: Math.min(timeoutMs, LIGHT_TIMEOUT_MS),
    starvedTimeoutMs: timeoutMs * MAX_LIGHT_SHARE,
  };
}

function describeJob(lane: Lane, { format, size, animation }: RenderJob) {
  return {
    'darkroom.lane': lane,
    'darkroom.format': format,
    'darkroom.width': size.widthPx,
    'darkroom.height': size.heightPx,
    'darkroom.frames': animation?.delaysMs.length ?? 1,
  };
}

function isTimeout(error: unknown): boolean {
  return error instanceof MediaError && error.code === 'TRANSFORM_TIMEOUT';
}
