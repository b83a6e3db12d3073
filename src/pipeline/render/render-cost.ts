import {
  largeStillOf,
  outputFormats,
  sourceFormats,
  type Weight,
} from '../../contract/image-formats.ts';
import type { ImageHeader, Size } from '../../formats/image-header.ts';
import type { VideoCodec } from '../../formats/video/av-metadata.ts';
import type { Lane, RenderJob } from '../ports.ts';

/** Estimated cost of a render, in milliseconds of one core. */
export interface RenderCost {
  /** Cost for a photograph; admission uses it. */
  readonly typicalMs: number;
  /** Cost for a single colour, the minimum: if it exceeds the deadline, the job cannot succeed. */
  readonly minMs: number;
}

/** Nanoseconds per original pixel, measured like the weights of formats. */
const resizeWeight: Weight = [3, 0.1];

/**
 * Nanoseconds per pixel of each JPEG scan after the first, also if the decoder skips pixels; measured with ten scans of
 * a photograph, and of one grey.
 */
const scanWeight: Weight = [1.2, 0.1];

/** Nanoseconds per row of original and result, measured with pictures of one column. */
const rowWeight: Weight = [500, 100];

/** Nanoseconds per pixel of a file rewritten without decoding. */
const rewriteWeight: Weight = [3, 0.1];

const baseMs: Weight = [2, 1];

/** Milliseconds per frame of an animation, scaled alone or together with others. */
const frameMs: { readonly [kind in 'alone' | 'together']: Weight } = {
  alone: [1, 0.2],
  together: [0, 0.05],
};

/**
 * Maximum cost of a light render, in milliseconds: ten avatars for a still, one for an animation, since animations are
 * seldom requested alone.
 */
const MAX_LIGHT_MS = { still: 100, animation: 25 };

/** Estimates the cost of a job: pixels × frames × format. */
export function estimateCost(
  { format, widthPx, heightPx, codedPixels = widthPx * heightPx, scans = 1 }: ImageHeader,
  job: RenderJob,
): RenderCost {
  const frames = job.animation?.delaysMs.length ?? 1;
  const decodedPixels = codedPixels * frames;
  const encodedPixels = job.size.widthPx * job.size.heightPx * frames;
  const rows = (heightPx + job.size.heightPx) * frames;
  const [typicalFrameMs, minFrameMs] = frameMs[scalesTogether(job) ? 'together' : 'alone'];
  const { decodeWeight, reducedDecodeWeight, decodedFrameMs = 0 } = sourceFormats[format];
  const { encodedFrameMs = 0 } = outputFormats[job.format];
  const formatFrameMs = decodedFrameMs + encodedFrameMs;
  const frameCost: Weight = [typicalFrameMs + formatFrameMs, minFrameMs];
  const isReduced = reducedDecodeWeight !== undefined && isReducedOnLoad(job);
  const decoding = isReduced ? reducedDecodeWeight : decodeWeight;
  const encoding = encodeWeightOf(job);
  const costMs = (column: 0 | 1): number => {
    if (job.isRewrite) return baseMs[column] + (decodedPixels * rewriteWeight[column]) / 1e6;
    const decodeNs = decoding[column] + resizeWeight[column];
    const pixelsNs = decodedPixels * decodeNs + encodedPixels * encoding[column];
    const extraNs = rows * rowWeight[column] + (scans - 1) * codedPixels * scanWeight[column];
    return baseMs[column] + (frames - 1) * frameCost[column] + (pixelsNs + extraNs) / 1e6;
  };
  return { typicalMs: costMs(0), minMs: costMs(1) };
}

/** Returns the weight of encoding; lossless animations and large lossless stills use less effort. */
function encodeWeightOf({ format, quality, size, animation }: RenderJob): Weight {
  const { encodeWeights, losslessAnimationWeight } = outputFormats[format];
  if (quality !== 'lossless') return encodeWeights[quality];
  const large = largeStillOf(format, size.widthPx * size.heightPx);
  const cheaper = animation === undefined ? large?.encodeWeight : losslessAnimationWeight;
  return cheaper ?? encodeWeights.lossless;
}

/**
 * Nanoseconds per pixel of a key frame, measured with ffmpeg 5.1 on a photograph in 1080p and 2160p. Noise at a high
 * bitrate takes up to twice as long.
 */
const keyFrameNs: Readonly<Record<VideoCodec, number>> = {
  h264: 35,
  hevc: 60,
  vp8: 35,
  vp9: 80,
  av1: 45,
};

/** Conversion of planes to RGB, in nanoseconds per pixel. */
const PLANES_NS = 35;

const DECODER_MS = 110;

/**
 * Estimates the cost of a poster, mostly one key frame. Without a minimum, since a late poster is a 504 (contract §12).
 */
export function estimatePosterCost(codec: VideoCodec, codedSize: Size, job: RenderJob): RenderCost {
  const pixels = codedSize.widthPx * codedSize.heightPx;
  const encodedPixels = job.size.widthPx * job.size.heightPx;
  const decodeNs = keyFrameNs[codec] + PLANES_NS + resizeWeight[0];
  const [encodeNs] = encodeWeightOf(job);
  const typicalMs = DECODER_MS + (pixels * decodeNs + encodedPixels * encodeNs) / 1e6;
  return { typicalMs, minMs: 0 };
}

/** Whether a decoder that downscales by powers of two skips most pixels; the filter does the last factor of two. */
function isReducedOnLoad({ originalSize, size, shrinksOnLoad }: RenderJob): boolean {
  const edges = ({ widthPx, heightPx }: Size): [number, number] =>
    widthPx < heightPx ? [widthPx, heightPx] : [heightPx, widthPx];
  const [shorter, longer] = edges(originalSize);
  const [toShorter, toLonger] = edges(size);
  const factor = Math.min(shorter / toShorter, longer / toLonger);
  return factor >= (shrinksOnLoad ? 2 : 4);
}

/** Returns the lane of a render; heavy renders have a lower priority. */
export function laneOf({ typicalMs }: RenderCost, { animation }: RenderJob): Lane {
  const maxMs = animation === undefined ? MAX_LIGHT_MS.still : MAX_LIGHT_MS.animation;
  return typicalMs > maxMs ? 'heavy' : 'light';
}

/** Maximum frame size for scaling frames together; for larger frames, copying costs as much as it saves. */
const MAX_TOGETHER_PIXELS = 320 * 320;

/** Whether frames of an animation are scaled together. */
export function scalesTogether({ resize, orientation, originalSize }: RenderJob): boolean {
  const { widthPx, heightPx } = originalSize;
  return resize === 'scale' && orientation === 1 && widthPx * heightPx <= MAX_TOGETHER_PIXELS;
}
