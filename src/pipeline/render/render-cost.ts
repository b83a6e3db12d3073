import type { OutputFormat, Quality, SourceFormat } from '../../contract/image-formats.ts';
import type { Size } from '../../formats/image-facts.ts';
import type { Lane } from '../ports.ts';
import { type RenderJob, scalesTogether } from './render-job.ts';

/** What a render costs of one core, in milliseconds, before it is begun. */
export interface RenderCost {
  /** Of a photograph; what slots are planned by. */
  readonly typicalMs: number;
  /** Of one flat colour: no content costs less, so what exceeds the deadline even so is hopeless. */
  readonly leastMs: number;
}

/** Nanoseconds of one core per pixel: of a photograph, and of one flat colour. */
type Weight = readonly [typicalNs: number, leastNs: number];

/**
 * Measured with sharp 0.35.5 (libvips 8.18.7) on one core of an x86-64 server, sharp's concurrency 1:
 * CPU time of photographs of 0.7 to 6 megapixels, and of one flat colour of 12. Noise takes up to
 * twice as long as a photograph. Machines differ; `Admission` learns by how much.
 */
const decodeWeights: Readonly<Record<SourceFormat, Weight>> = {
  jpeg: [15, 0.5],
  png: [13, 4],
  webp: [25, 10],
  gif: [9, 3],
  avif: [65, 40],
};

/** Of a JPEG whose decoder reduces it by two at least. */
const reducedJpegWeight: Weight = [2, 0.1];

const resizeWeight: Weight = [3, 0.1];

const encodeWeights: Readonly<Record<OutputFormat, Readonly<Record<Quality, Weight>>>> = {
  jpeg: { high: [21, 8], low: [19, 8], lossless: [60, 30] },
  png: { high: [80, 10], low: [320, 20], lossless: [80, 10] },
  webp: { high: [140, 20], low: [100, 20], lossless: [570, 10] },
  gif: { high: [500, 20], low: [140, 20], lossless: [500, 20] },
};

/** Whatever the picture: message, decoder, encoder, in milliseconds. */
const baseMs: Weight = [2, 1];

/** Of each frame of an animation, in milliseconds: one that goes through libvips by itself, and one of many. */
const frameMs: { readonly [kind in 'alone' | 'together']: Weight } = {
  alone: [1, 0.2],
  together: [0, 0.05],
};

/** Of each frame besides, typically, in milliseconds: a WebP's is an image of its own, a GIF's looks for its colours. */
const decodedFrameMs: Readonly<Record<SourceFormat, number>> = {
  jpeg: 0,
  png: 0,
  webp: 0.8,
  gif: 0,
  avif: 0,
};
const encodedFrameMs: Readonly<Record<OutputFormat, number>> = {
  jpeg: 0,
  png: 0,
  webp: 0.5,
  gif: 1.8,
};

/**
 * What a light render costs at most, in milliseconds. A still may cost as much as some ten avatars; an
 * animation, which seldom comes alone, no more than one.
 */
const MAX_LIGHT_MS = { still: 100, animation: 25 };

/** Estimates the cost of a job from what the header tells: pixels × frames × format. */
export function estimateCost(format: SourceFormat, quality: Quality, job: RenderJob): RenderCost {
  const frames = job.animation?.delaysMs.length ?? 1;
  const decodedPixels = job.originalSize.widthPx * job.originalSize.heightPx * frames;
  const encodedPixels = job.size.widthPx * job.size.heightPx * frames;
  const [typicalFrameMs, leastFrameMs] = frameMs[scalesTogether(job) ? 'together' : 'alone'];
  const besidesMs = decodedFrameMs[format] + encodedFrameMs[job.format];
  const frameCost: Weight = [typicalFrameMs + besidesMs, leastFrameMs];
  const decodeWeight =
    format === 'jpeg' && isReducedOnLoad(job) ? reducedJpegWeight : decodeWeights[format];
  const encodeWeight = encodeWeights[job.format][quality];
  const costMs = (column: 0 | 1): number => {
    const decodeNs = decodeWeight[column] + resizeWeight[column];
    const pixelsNs = decodedPixels * decodeNs + encodedPixels * encodeWeight[column];
    return baseMs[column] + (frames - 1) * frameCost[column] + pixelsNs / 1e6;
  };
  return { typicalMs: costMs(0), leastMs: costMs(1) };
}

/** Whether a JPEG's decoder leaves out most of its pixels: by powers of two, and the last one to the filter. */
function isReducedOnLoad({ originalSize, size, shrinksOnLoad }: RenderJob): boolean {
  const edges = ({ widthPx, heightPx }: Size): [number, number] =>
    widthPx < heightPx ? [widthPx, heightPx] : [heightPx, widthPx];
  // Whichever way it lies.
  const [shorter, longer] = edges(originalSize);
  const [toShorter, toLonger] = edges(size);
  const factor = Math.min(shorter / toShorter, longer / toLonger);
  return factor >= (shrinksOnLoad ? 2 : 4);
}

/** Heavy renders are kept to some of the workers, so that an animation never keeps an avatar waiting. */
export function laneOf({ typicalMs }: RenderCost, { animation }: RenderJob): Lane {
  const maxMs = animation === undefined ? MAX_LIGHT_MS.still : MAX_LIGHT_MS.animation;
  return typicalMs > maxMs ? 'heavy' : 'light';
}
