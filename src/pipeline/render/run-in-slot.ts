import { MediaError } from '../../contract/errors.ts';
import { outputFormats } from '../../contract/image-formats.ts';
import type { Reservation } from '../originals/memory-budget.ts';
import type { Inspected, OriginalFlight } from '../originals/original-flight.ts';
import type {
  Lane,
  RangeReader,
  RenderBounds,
  RenderJob,
  RenderSlot,
  StoredResult,
} from '../ports.ts';
import type { Charge } from '../rates.ts';
import type { RequestTrace, StageDetails } from '../request-trace.ts';
import type { Services } from '../services.ts';
import type { FlightControls } from '../single-flight.ts';
import type { RenderPlan } from './plan.ts';
import { laneOf } from './render-cost.ts';

/** Estimated cost of reading the metadata of a video, in milliseconds: the largest index of contract §12 takes about 500. */
const INSPECTION_MS = 20;

export interface SharedWork extends FlightControls {
  readonly original: OriginalFlight;
  /** Trace of the first request. */
  readonly trace: RequestTrace;
}

export type BufferedOriginal = { readonly bytes: Uint8Array } & Partial<
  Pick<Reservation, 'countAgainst'>
>;

interface SlotUse<Result> {
  readonly lane: Lane;
  readonly costMs: number;
  /** Earlier time in a slot, which counts against the deadline. */
  readonly spentMs: number;
  readonly run: (slot: RenderSlot, bounds: RenderBounds, details: StageDetails) => Promise<Result>;
  readonly addRun: (tookMs: number) => void;
}

/** Whether videos have posters; resolves once the decoder has been tested. */
export async function canDecodeVideo({ renderer }: Services): Promise<boolean> {
  return (await renderer.videoSupport)?.isSupported === true;
}

/**
 * Waits for a CPU slot, and renders.
 *
 * @param spentMs earlier time in a slot, which counts against the deadline
 * @param charge receives the time in the slot
 * @returns `undefined` if only the quality would change, and the result is not smaller than the original
 * @throws MediaError `UNPROCESSABLE_MEDIA`, `MEDIA_TOO_LARGE`, `OVERLOADED`, `TRANSFORM_TIMEOUT`, for a video
 *   `ORIGIN_ERROR` and `ORIGIN_TIMEOUT`; or `work.signal.reason`
 */
export async function renderInSlot(
  services: Services,
  { job, cost, isOnlyQuality }: RenderPlan,
  loaded: BufferedOriginal | { readonly reader: RangeReader },
  work: SharedWork,
  spentMs = 0,
  charge?: Charge,
): Promise<StoredResult | undefined> {
  const original = 'reader' in loaded ? loaded.reader : loaded.bytes;
  const countAgainst = 'bytes' in loaded ? loaded.countAgainst : undefined;
  const lane = laneOf(cost, job);
  const run: SlotUse<Uint8Array>['run'] = async (slot, bounds, details) => {
    Object.assign(details, describeJob(job));
    const rendered = await slot.render(original, job, bounds);
    details.bytes = rendered.byteLength;
    return rendered;
  };
  const addRun = (tookMs: number): void => charge?.addRun(tookMs);
  const use = { lane, costMs: cost.typicalMs, spentMs, run, addRun };
  const body = await runInSlot(services, use, work, countAgainst);
  if (isOnlyQuality && 'bytes' in loaded && body.byteLength >= loaded.bytes.byteLength) {
    return undefined;
  }
  return { body, mimeType: outputFormats[job.format].mimeType };
}

/** Reads the metadata of a video or audio file in a slot. @throws MediaError as `renderInSlot` does for a video */
export async function inspectInSlot(
  services: Services,
  reader: RangeReader,
  work: SharedWork,
): Promise<Inspected> {
  let spentMs = 0;
  const metadata = await runInSlot(
    services,
    {
      lane: 'light',
      costMs: INSPECTION_MS,
      spentMs: 0,
      run: (slot, bounds) => slot.inspect(reader, bounds),
      addRun: (tookMs) => {
        spentMs = tookMs;
      },
    },
    work,
  );
  return { metadata, spentMs };
}

async function runInSlot<Result>(
  { admission, renderLimits, refusals }: Services,
  { lane, costMs, spentMs, run, addRun }: SlotUse<Result>,
  { original, signal, keepAlive, trace }: SharedWork,
  countAgainst?: Reservation['countAgainst'],
): Promise<Result> {
  const { originKey } = original;
  refusals.throwIfQuarantined(originKey, costMs);
  signal.throwIfAborted();
  countAgainst?.(lane);
  const { slot, free } = await trace.stage('queue', (details) => {
    details.lane = lane;
    return admission.acquire(lane, costMs, signal);
  });
  const timeoutMs = Math.max(renderLimits.timeoutMs - spentMs, 1);
  let [hasBegun, isMeasured] = [false, false];
  try {
    signal.throwIfAborted();
    // Renders of the same original may have failed during the wait.
    refusals.throwIfQuarantined(originKey, costMs);
    hasBegun = true;
    const running = trace.stage('render', (details) => {
      details.lane = lane;
      return run(slot, { signal, timeoutMs }, details);
    });
    // A light render continues without clients, since a new worker would cost more.
    if (lane === 'light') keepAlive(running);
    const result = await running;
    isMeasured = true;
    return result;
  } catch (error) {
    const isTimeout = error instanceof MediaError && error.code === 'TRANSFORM_TIMEOUT';
    if (hasBegun && isTimeout) original.commit(() => refusals.noteTimeout(originKey, costMs));
    throw error;
  } finally {
    const tookMs = free(isMeasured);
    if (hasBegun) addRun(tookMs);
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
