import type { Attributes, Span } from '@opentelemetry/api';
import { MediaError } from '../../contract/errors.ts';
import { outputFormats } from '../../contract/image-formats.ts';
import type { MovingFacts } from '../../formats/video/video-facts.ts';
import type { Reservation } from '../originals/memory-budget.ts';
import type { Inspected } from '../originals/original.ts';
import type { OriginalRecords } from '../originals/records.ts';
import type {
  Lane,
  RangeReader,
  RenderBounds,
  Renderer,
  RenderJob,
  RenderSlot,
  StoredResult,
} from '../ports.ts';
import type { Charge } from '../rates.ts';
import type { MediaTask } from '../results/results.ts';
import type { Admission } from './admission.ts';
import type { RenderLimits, RenderPlan } from './plan.ts';
import { laneOf } from './render-cost.ts';

interface AdmittedRendererParts {
  readonly admission: Admission;
  readonly records: OriginalRecords;
  readonly limits: RenderLimits;
  readonly renderer: Pick<Renderer, 'videoSupport'>;
}

/** A render that was estimated to be light, and is not. */
class TooSlowForLane extends Error {
  override readonly name = 'TooSlowForLane';
}

/** Time for a render in the light lane, in milliseconds: thirty times as much as is foreseen at most. */
const LIGHT_TIMEOUT_MS = 3_000;

/** Estimated cost of reading the facts of a video, in milliseconds: the largest index of contract §12 takes some 500. */
const INSPECTION_MS = 20;

interface SlotWork<Result> {
  readonly lane: Lane;
  readonly costMs: number;
  readonly attributes: Attributes;
  readonly run: (slot: RenderSlot, bounds: RenderBounds, span: Span | undefined) => Promise<Result>;
  /** Counts the memory of the original for the lane. */
  readonly assign?: Reservation['assign'] | undefined;
  readonly addRun: (heldMs: number) => void;
}

/** An original in memory, which may have a reservation. */
export type WholeOriginal = { readonly bytes: Uint8Array } & Partial<Pick<Reservation, 'assign'>>;

/** Requests that work in a slot is done for. */
export type Work = Pick<MediaTask, 'original' | 'signal' | 'keep' | 'trace'>;

/** Uses CPU slots when there is one free. */
export class AdmittedRenderer {
  readonly #parts: AdmittedRendererParts;

  constructor(parts: AdmittedRendererParts) {
    this.#parts = parts;
  }

  /** Resolves to whether videos have posters here. */
  async canDecodeVideo(): Promise<boolean> {
    return (await this.#parts.renderer.videoSupport)?.isSupported === true;
  }

  /**
   * Waits for a CPU slot, and renders. A render that looks light and is not (thousands of scans in a JPEG, say) would
   * keep the rest of the light lane waiting: after a while it begins anew in the heavy one.
   *
   * @param charge is told how long it took, each time that it began
   * @param spentMs time that reading the facts of a video took, which counts for the deadline
   * @returns `undefined` where only the quality was to change, and the result is no smaller than the original
   * @throws MediaError `UNPROCESSABLE_MEDIA`, `MEDIA_TOO_LARGE`, `OVERLOADED`, `TRANSFORM_TIMEOUT`, for a video
   *   `ORIGIN_ERROR` and `ORIGIN_TIMEOUT`; or `work.signal.reason`
   */
  async render(
    { job, cost, isOnlyQuality }: RenderPlan,
    held: WholeOriginal | { readonly reader: RangeReader },
    work: Work,
    charge?: Charge,
    spentMs = 0,
  ): Promise<StoredResult | undefined> {
    const original = 'reader' in held ? held.reader : held.bytes;
    const lane = laneOf(cost, job);
    const slotWork: SlotWork<Uint8Array> = {
      ...{ lane, costMs: cost.typicalMs, attributes: describeJob(job) },
      run: async (slot, bounds, span) => {
        const rendered = await slot.render(original, job, bounds);
        span?.setAttribute('darkroom.bytes', rendered.byteLength);
        return rendered;
      },
      assign: 'bytes' in held ? held.assign : undefined,
      addRun: (heldMs) => charge?.addRun(heldMs),
    };
    const body = await this.#run(slotWork, work, () => spentMs);
    if (isOnlyQuality && 'bytes' in held && body.byteLength >= held.bytes.byteLength) {
      return undefined;
    }
    return { body, mimeType: outputFormats[job.format].mimeType };
  }

  /**
   * Reads the facts of a video or of sound in a slot.
   *
   * @throws MediaError as `render` does for a video
   */
  async inspect(reader: RangeReader, work: Work): Promise<Inspected> {
    let spentMs = 0;
    const slotWork: SlotWork<MovingFacts> = {
      ...{ lane: 'light', costMs: INSPECTION_MS, attributes: {} },
      run: (slot, bounds) => slot.inspect(reader, bounds),
      addRun: (heldMs) => {
        spentMs += heldMs;
      },
    };
    const facts = await this.#run(slotWork, work, () => spentMs);
    return { facts, spentMs };
  }

  async #run<Result>(slotWork: SlotWork<Result>, work: Work, spent: () => number): Promise<Result> {
    const { records } = this.#parts;
    const { originKey } = work.original;
    // Fails before queueing: the original timed out or crashed workers lately.
    records.throwIfBlamed(originKey);
    if (slotWork.lane === 'light' && !records.isSlow(originKey)) {
      try {
        return await this.#runIn(slotWork, work, spent());
      } catch (error) {
        if (!(error instanceof TooSlowForLane)) throw error;
      }
    }
    // What a slow one costs is not known: more than the time that it has had.
    const isSlow = records.isSlow(originKey) || slotWork.lane === 'light';
    const costMs = isSlow ? Math.max(slotWork.costMs, LIGHT_TIMEOUT_MS) : slotWork.costMs;
    return this.#runIn({ ...slotWork, lane: 'heavy', costMs }, work, spent());
  }

  /**
   * Works in a slot, which is held from here to the end.
   *
   * @throws TooSlowForLane if light work has taken too long for one
   */
  async #runIn<Result>(
    { lane, costMs, attributes, run, assign, addRun }: SlotWork<Result>,
    { original, signal, keep, trace }: Work,
    spentMs: number,
  ): Promise<Result> {
    const { admission, limits, records } = this.#parts;
    const { originKey } = original;
    signal.throwIfAborted();
    assign?.(lane);
    const { slot, leave } = await trace.stage('queue', (span) => {
      span?.setAttributes({ 'darkroom.lane': lane });
      return admission.enter(lane, costMs, signal);
    });
    const timeoutMs = Math.max(limits.timeoutMs - spentMs, 1);
    let [hasBegun, isMeasured] = [false, false];
    try {
      signal.throwIfAborted();
      // Others of the same original may have been ahead in the queue.
      records.throwIfBlamed(originKey);
      if (lane === 'light' && records.isSlow(originKey)) throw new TooSlowForLane();
      hasBegun = true;
      const running = trace.stage('render', (span) => {
        span?.setAttributes({ 'darkroom.lane': lane, ...attributes });
        return run(
          slot,
          {
            signal,
            timeoutMs: lane === 'light' ? Math.min(timeoutMs, LIGHT_TIMEOUT_MS) : timeoutMs,
          },
          span,
        );
      });
      // It goes on when its clients leave: a new worker would cost more than what is left of it.
      if (lane === 'light') keep(running);
      const result = await running;
      isMeasured = true;
      return result;
    } catch (error) {
      isMeasured = isTimeout(error);
      if (lane === 'heavy' || !isTimeout(error)) throw error;
      if (!original.isOutdated) records.noteSlow(originKey);
      // The heavy lane would give it no more time than it had.
      if (timeoutMs <= LIGHT_TIMEOUT_MS) throw error;
      throw new TooSlowForLane();
    } finally {
      const heldMs = leave(isMeasured);
      if (hasBegun) addRun(heldMs);
    }
  }
}

function describeJob({ format, size, animation }: RenderJob): Attributes {
  return {
    'darkroom.format': format,
    'darkroom.width': size.widthPx,
    'darkroom.height': size.heightPx,
    'darkroom.frames': animation?.delaysMs.length ?? 1,
  };
}

function isTimeout(error: unknown): boolean {
  return error instanceof MediaError && error.code === 'TRANSFORM_TIMEOUT';
}
