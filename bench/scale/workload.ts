import { sourceFormats } from '../../src/contract/image-formats.ts';
import { parseTarget } from '../../src/contract/media-request.ts';
import type { ImageFacts } from '../../src/formats/image-facts.ts';
import { type Plan, planMedia } from '../../src/pipeline/render/plan.ts';
import type { ContentKind, Shape } from '../trace/shapes.ts';
import { formatTarget } from '../trace/targets.ts';
import type { Trace } from '../trace/trace.ts';
import { variants } from '../trace/usages.ts';
import { contentOf, interpolate } from './byte-table.ts';
import { originalBytes, resultBytes } from './result-bytes.ts';

/** What a request is to the service. */
export type Work = 'passthrough' | 'passthrough' | 'render';

/** What a rendering takes and gives. */
export interface RenderingFacts {
  readonly work: Work;
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

/** The contract's defaults (spec §6). */
const limits = {
  maxInputPixels: 100_000_000,
  maxFrames: 1_024,
  timeoutMs: 15_000,
  maxResultBytes: 104_857_600,
};

const DELAY_MS = 60;

/** Works out what each rendering of a trace takes: by the service's own parser, plan and estimate. */
export function createWorkload(trace: Trace): Workload {
  const { originals, renderings } = trace.catalogue;
  const known = new Map<Shape, Map<number, RenderingFacts>>();
  const factsOf = (kind: ContentKind, shape: Shape, variant: number): RenderingFacts => {
    let ofShape = known.get(shape);
    if (ofShape === undefined) {
      ofShape = new Map();
      known.set(shape, ofShape);
    }
    let facts = ofShape.get(variant);
    if (facts === undefined) {
      facts = planRendering(kind, shape, variants[variant]?.ask ?? '');
      ofShape.set(variant, facts);
    }
    return facts;
  };
  return {
    trace,
    originals: Int32Array.from(renderings, ({ original }) => original),
    facts: renderings.map(({ original, variant }) => {
      const traced = originals[original];
      if (traced === undefined) throw new Error(`There is no original ${original}.`);
      const { work, cpuMs, bytes } = factsOf(traced.kind, traced.shape, variant);
      return { work, cpuMs, bytes: Math.round(bytes * traced.detail) };
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
  if (target.request.isVerbatim) {
    return { work: 'passthrough', cpuMs: 0, bytes: estimateOriginalBytes(kind, shape) };
  }
  const plan = planMedia(toFacts(shape), target.request, limits);
  switch (plan.kind) {
    case 'refuse':
      throw new Error(`${kind}${ask}: ${plan.reason}`);
    case 'passthrough':
      return { work: 'passthrough', cpuMs: 0, bytes: estimateOriginalBytes(kind, shape) };
    case 'render':
      return {
        work: 'render',
        cpuMs: plan.cost.typicalMs,
        bytes: estimateResultBytes(kind, target.request.quality, plan),
      };
  }
}

function toFacts({ format, widthPx, heightPx, frames, isClean }: Shape): ImageFacts {
  const animation =
    frames > 1 ? { delaysMs: Array.from({ length: frames }, () => DELAY_MS), plays: 0 } : undefined;
  return { format, widthPx, heightPx, orientation: 1, frames, animation, isClean };
}

function estimateResultBytes(
  kind: ContentKind,
  quality: 'high' | 'low' | 'lossless',
  { job }: Extract<Plan, { readonly kind: 'render' }>,
): number {
  const content = contentOf(kind);
  const isAnimated = job.animation !== undefined;
  const row = resultBytes.find(
    (candidate) =>
      candidate.content === content &&
      candidate.format === job.format &&
      candidate.isAnimated === isAnimated &&
      // Where both qualities are the same, one was measured.
      (candidate.quality === quality || (job.format !== 'webp' && job.format !== 'jpeg')),
  );
  if (row === undefined) {
    throw new Error(`Bytes of a ${content} as ${job.format}, ${quality}: not measured.`);
  }
  const frames = job.animation?.delaysMs.length ?? 1;
  return frames * interpolate(row.points, job.size.widthPx * job.size.heightPx);
}

/** Bytes of an original of this shape, its detail aside. */
export function estimateOriginalBytes(kind: ContentKind, shape: Shape): number {
  const content = contentOf(kind);
  const { format, widthPx, heightPx, frames } = shape;
  const row = originalBytes.find(
    (candidate) =>
      candidate.content === content &&
      candidate.format === format &&
      candidate.isAnimated === frames > 1,
  );
  if (row === undefined) {
    throw new Error(`Bytes of a ${content} as ${sourceFormats[format].mimeType}: not measured.`);
  }
  return row.bytesPerPixel * widthPx * heightPx * frames;
}
