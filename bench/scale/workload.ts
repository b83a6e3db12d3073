import { readFileSync } from 'node:fs';
import { parseTarget } from '../../src/contract/media-request.ts';
import type { ImageFacts } from '../../src/formats/image-facts.ts';
import { planMedia } from '../../src/pipeline/render/plan.ts';
import type { TracedOriginal } from '../trace/catalogue.ts';
import { type ContentKind, type Shape, shapesOf } from '../trace/shapes.ts';
import type { Trace } from '../trace/trace.ts';
import { formatTarget } from '../trace/usages.ts';

/** What a rendering takes and gives. */
export interface RenderingFacts {
  /** `stream`: an attachment as it is; `passthrough`: a result that is the original. */
  readonly work: 'stream' | 'passthrough' | 'render';
  /** CPU of its render, by the service's own estimate; 0 of what is not rendered. */
  readonly cpuMs: number;
  readonly bytes: number;
}

/** A trace with all numbers that a simulation needs, per rendering and per original. */
export type Workload = ReturnType<typeof createWorkload>;

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

/** Pixels of a frame and bytes of a frame, the smallest first. */
type Points = readonly (readonly [pixels: number, bytes: number])[];

/** Bytes of pictures of each sort by their sizes; a sort is what stands before the points in the file. */
const pointsOf: ReadonlyMap<string, Points> = new Map(
  readFileSync('bench/scale/bytes.tsv', 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, sort = '', points = ''] = /^(.*)\t(.*)$/.exec(line) ?? [];
      const pairs = points.split(' ').map((point) => point.split(':').map(Number));
      return [sort.replaceAll('\t', ' '), pairs as unknown as Points];
    }),
);

/** Works out what each rendering of a trace takes: by the service's own parser, plan and estimate. */
export function createWorkload(trace: Trace) {
  const { catalogue } = trace;
  const known = new Map<string, RenderingFacts>();
  return {
    trace,
    /** Original of each rendering. */
    originals: Int32Array.from(catalogue.renderings, ({ original }) => original),
    facts: catalogue.renderings.map(({ original, ask }): RenderingFacts => {
      const { kind, shape, detail } = catalogue.original(original);
      const sort = [kind, shapesOf[kind].indexOf(shape), ask].join();
      const facts = known.get(sort) ?? planRendering({ kind, shape }, ask);
      known.set(sort, facts);
      return { ...facts, bytes: Math.round(facts.bytes * detail) };
    }),
    /** Bytes of each original. */
    originalBytes: Float64Array.from(catalogue.originals, (original) =>
      Math.round(estimateOriginalBytes(original) * original.detail),
    ),
  };
}

/** An original, its detail aside. */
type Sort = Pick<TracedOriginal, 'kind' | 'shape'>;

/**
 * What a rendering takes.
 *
 * @throws Error if the service would refuse it: a trace asks for nothing of that sort
 */
export function planRendering(original: Sort, ask: string): RenderingFacts {
  const { kind, shape } = original;
  const target = parseTarget(formatTarget(kind, shape, 0, ask));
  if (target.kind !== 'media') throw new Error(`${ask} asks for no media.`);
  if (target.request.isPassthrough) {
    return { work: 'stream', cpuMs: 0, bytes: estimateOriginalBytes(original) };
  }
  const plan = planMedia(toFacts(shape), target.request, limits);
  switch (plan.kind) {
    case 'refuse':
      throw new Error(`${kind}${ask}: ${plan.reason}`);
    case 'passthrough':
      return { work: 'passthrough', cpuMs: 0, bytes: estimateOriginalBytes(original) };
    case 'render': {
      const { job, cost } = plan;
      const { format, animation, size } = job;
      // Where both qualities are the same, one was measured.
      const quality = format === 'webp' || format === 'jpeg' ? target.request.quality : 'high';
      const motion = animation === undefined ? 'still' : 'animated';
      const points = findPoints('result', contentOf(kind), format, quality, motion);
      const frames = animation?.delaysMs.length ?? 1;
      const bytes = frames * interpolate(points, size.widthPx * size.heightPx);
      return { work: 'render', cpuMs: cost.typicalMs, bytes };
    }
  }
}

function toFacts({ format, widthPx, heightPx, frames, isClean }: Shape): ImageFacts {
  const animation =
    frames > 1 ? { delaysMs: Array.from({ length: frames }, () => DELAY_MS), plays: 0 } : undefined;
  return { format, widthPx, heightPx, orientation: 1, frames, animation, isClean };
}

function estimateOriginalBytes({ kind, shape }: Sort): number {
  const { format, widthPx, heightPx, frames } = shape;
  const motion = frames > 1 ? 'animated' : 'still';
  const [[, bytesPerPixel] = [1, 0]] = findPoints(
    'original',
    contentOf(kind),
    format,
    'any',
    motion,
  );
  return bytesPerPixel * widthPx * heightPx * frames;
}

/** Whether a kind shows what was drawn, or photographed and filmed. */
function contentOf(kind: ContentKind): 'drawing' | 'photo' {
  return kind === 'custom emoji' || kind === 'sticker' ? 'drawing' : 'photo';
}

/** @throws Error if nothing of this sort was measured */
function findPoints(...sort: readonly string[]): Points {
  const points = pointsOf.get(sort.join(' '));
  if (points === undefined) throw new Error(`Bytes of ${sort.join(', ')}: not measured.`);
  return points;
}

/** Bytes at a size between the measured ones, on a straight line of their logarithms. */
export function interpolate(points: Points, pixels: number): number {
  const after = points.findIndex(([measured]) => measured >= pixels);
  const high = Math.max(1, after < 0 ? points.length - 1 : after);
  const [highPixels, highBytes] = points[Math.min(high, points.length - 1)] ?? [1, 1];
  const [lowPixels, lowBytes] = points[high - 1] ?? [1, 1];
  if (lowPixels === highPixels) return lowBytes;
  const slope = Math.log(highBytes / lowBytes) / Math.log(highPixels / lowPixels);
  return lowBytes * (pixels / lowPixels) ** slope;
}
