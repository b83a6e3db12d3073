import { parseTarget } from '../../src/contract/media-request.ts';
import type { ImageFacts } from '../../src/formats/image-facts.ts';
import { planMedia } from '../../src/pipeline/render/plan.ts';
import type { ContentKind, Shape } from '../trace/shapes.ts';
import { formatTarget } from '../trace/targets.ts';
import type { Trace } from '../trace/trace.ts';
import { variants } from '../trace/usages.ts';
import { type BytesRow, contentOf, interpolate, readByteTable } from './byte-table.ts';

/** What a rendering takes and gives. */
export interface RenderingFacts {
  /** `stream`: an attachment as it is; `passthrough`: a result that is the original. */
  readonly work: 'stream' | 'passthrough' | 'render';
  /** CPU of its render, by the service's own estimate; 0 of what is not rendered. */
  readonly cpuMs: number;
  readonly bytes: number;
}

/** A trace with all numbers that a simulation needs, per rendering and per original. */
export interface Workload {
  readonly trace: Trace;
  /** Original of each rendering. */
  readonly originals: Int32Array;
  readonly facts: readonly RenderingFacts[];
  /** Bytes of each original. */
  readonly originalBytes: Float64Array;
}

/** The contract's defaults (contract §6). */
const limits = {
  maxInputPixels: 100_000_000,
  maxScanPixels: 4_000_000_000,
  maxEdgePx: 262_144,
  maxFrames: 1_024,
  timeoutMs: 15_000,
  maxResultBytes: 104_857_600,
  webpEffort: 4,
};

const DELAY_MS = 60;

const byteTable = readByteTable();

/** Works out what each rendering of a trace takes: by the service's own parser, plan and estimate. */
export function createWorkload(trace: Trace): Workload {
  const { originals, renderings } = trace.catalogue;
  const known = new Map<Shape, (RenderingFacts | undefined)[]>();
  return {
    trace,
    originals: Int32Array.from(renderings, ({ original }) => original),
    facts: renderings.map(({ original, variant }) => {
      const traced = originals[original];
      if (traced === undefined) throw new Error(`There is no original ${original}.`);
      const { kind, shape, detail } = traced;
      const ofShape = known.get(shape) ?? [];
      known.set(shape, ofShape);
      ofShape[variant] ??= planRendering(kind, shape, variants[variant]?.ask ?? '');
      const { work, cpuMs, bytes } = ofShape[variant];
      return { work, cpuMs, bytes: Math.round(bytes * detail) };
    }),
    originalBytes: Float64Array.from(originals, ({ kind, shape, detail }) =>
      Math.round(estimateOriginalBytes(kind, shape) * detail),
    ),
  };
}

/**
 * What a rendering of an original of this shape takes, its detail aside.
 *
 * @throws Error if the service would refuse it: a trace asks for nothing of that sort
 */
export function planRendering(kind: ContentKind, shape: Shape, ask: string): RenderingFacts {
  const target = parseTarget(formatTarget(kind, shape, 0, ask));
  if (target.kind !== 'media') throw new Error(`${ask} asks for no media.`);
  if (target.request.isPassthrough) {
    return { work: 'stream', cpuMs: 0, bytes: estimateOriginalBytes(kind, shape) };
  }
  const plan = planMedia(toFacts(shape), target.request, limits);
  switch (plan.kind) {
    case 'refuse':
      throw new Error(`${kind}${ask}: ${plan.reason}`);
    case 'passthrough':
      return { work: 'passthrough', cpuMs: 0, bytes: estimateOriginalBytes(kind, shape) };
    case 'render': {
      const { job, cost } = plan;
      const points = findPoints('result', kind, {
        format: job.format,
        // Where both qualities are the same, one was measured.
        quality: job.format === 'webp' || job.format === 'jpeg' ? target.request.quality : 'high',
        motion: job.animation === undefined ? 'still' : 'animated',
      });
      const frames = job.animation?.delaysMs.length ?? 1;
      const bytes = frames * interpolate(points, job.size.widthPx * job.size.heightPx);
      return { work: 'render', cpuMs: cost.typicalMs, bytes };
    }
  }
}

function toFacts({ format, widthPx, heightPx, frames, isClean }: Shape): ImageFacts {
  const animation =
    frames > 1 ? { delaysMs: Array.from({ length: frames }, () => DELAY_MS), plays: 0 } : undefined;
  return { format, widthPx, heightPx, orientation: 1, frames, animation, isClean };
}

function estimateOriginalBytes(kind: ContentKind, shape: Shape): number {
  const { format, widthPx, heightPx, frames } = shape;
  const motion = frames > 1 ? 'animated' : 'still';
  const [[, bytesPerPixel] = [1, 0]] = findPoints('original', kind, {
    format,
    quality: 'any',
    motion,
  });
  return bytesPerPixel * widthPx * heightPx * frames;
}

/** @throws Error if nothing of this sort was measured */
function findPoints(
  of: BytesRow['of'],
  kind: ContentKind,
  sort: Pick<BytesRow, 'format' | 'quality' | 'motion'>,
): BytesRow['points'] {
  const wanted = [of, contentOf(kind), sort.format, sort.quality, sort.motion].join();
  const row = byteTable.find(
    ({ of, content, format, quality, motion }) =>
      [of, content, format, quality, motion].join() === wanted,
  );
  if (row === undefined) throw new Error(`Bytes of ${wanted}: not measured.`);
  return row.points;
}
