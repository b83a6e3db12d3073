import { MediaError } from '../../contract/errors.ts';
import { outputFormats } from '../../contract/image-formats.ts';
import type { MovingFacts } from '../../formats/video/video-facts.ts';
import type { Reservation } from '../originals/memory-budget.ts';
import type { Inspected } from '../originals/original-flight.ts';
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
import type { StageDetails } from '../request-trace.ts';
import type { RenderTask } from '../results/results.ts';
import type { Admission } from './admission.ts';
import type { RenderLimits, RenderPlan } from './plan.ts';
import { laneOf } from './render-cost.ts';

interface AdmittedRendererParts {
  readonly admission: Admission;
  readonly records: OriginalRecords;
  readonly limits: RenderLimits;
  readonly renderer: Pick<Renderer, 'videoSupport'>;
}

/** Estimated cost of reading the facts of a video, in milliseconds: the largest index of contract §12 takes some 500. */
const INSPECTION_MS = 20;

interface SlotWork<Result> {
  readonly lane: Lane;
  readonly costMs: number;
  readonly job?: RenderJob;
  readonly run: (slot: RenderSlot, bounds: RenderBounds, details: StageDetails) => Promise<Result>;
  /** Counts the memory of the original for the lane. */
  readonly assign?: Reservation['assign'] | undefined;
  readonly addRun: (heldMs: number) => void;
}

/** An original in memory, which may have a reservation. */
export type WholeOriginal = { readonly bytes: Uint8Array } & Partial<Pick<Reservation, 'assign'>>;

/** Requests that work in a slot is done for. */
export type Work = Pick<RenderTask, 'original' | 'signal' | 'keep' | 'trace'>;

/** Renders in a CPU slot, after waiting for one. */
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
   * Waits for a CPU slot, and renders.
   *
   * @param charge is charged for the time in the slot
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
      lane,
      costMs: cost.typicalMs,
      job,
      run: async (slot, bounds, details) => {
        const rendered = await slot.render(original, job, bounds);
        details.bytes = rendered.byteLength;
        return rendered;
      },
      assign: 'bytes' in held ? held.assign : undefined,
      addRun: (heldMs) => charge?.addRun(heldMs),
    };
    const body = await this.#run(slotWork, work, spentMs);
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
      lane: 'light',
      costMs: INSPECTION_MS,
      run: (slot, bounds) => slot.inspect(reader, bounds),
      addRun: (heldMs) => {
        spentMs = heldMs;
      },
    };
    const facts = await this.#run(slotWork, work, 0);
    return { facts, spentMs };
  }

  /** Works in a slot, and holds it until the work ends. */
  async #run<Result>(
    { lane, costMs, job, run, assign, addRun }: SlotWork<Result>,
    { original, signal, keep, trace }: Work,
    spentMs: number,
  ): Promise<Result> {
    const { admission, limits, records } = this.#parts;
    const { originKey } = original;
    // Fails before queueing.
    records.throwIfQuarantined(originKey, costMs);
    signal.throwIfAborted();
    assign?.(lane);
    const { slot, leave } = await trace.stage('queue', (details) => {
      details.lane = lane;
      return admission.enter(lane, costMs, signal);
    });
    const timeoutMs = Math.max(limits.timeoutMs - spentMs, 1);
    let [hasBegun, isMeasured] = [false, false];
    try {
      signal.throwIfAborted();
      // Others of the same original may have been ahead in the queue.
      records.throwIfQuarantined(originKey, costMs);
      hasBegun = true;
      const running = trace.stage('render', (details) => {
        details.lane = lane;
        if (job !== undefined) Object.assign(details, describeJob(job));
        return run(slot, { signal, timeoutMs }, details);
      });
      // It goes on when its clients leave: a new worker would cost more than what is left of it.
      if (lane === 'light') keep(running);
      const result = await running;
      isMeasured = true;
      return result;
    } catch (error) {
      const isTimeout = error instanceof MediaError && error.code === 'TRANSFORM_TIMEOUT';
      if (hasBegun && isTimeout) original.markSlow(costMs);
      throw error;
    } finally {
      const heldMs = leave(isMeasured);
      if (hasBegun) addRun(heldMs);
    }
  }
}

function describeJob({ format, size, animation }: RenderJob): StageDetails {
  return {
    format,
    widthPx: size.widthPx,
    heightPx: size.heightPx,
    frames: animation?.delaysMs.length ?? 1,
  };
}
