import { isLossless, outputFormats, sourceFormats } from '../../contract/image-formats.ts';
import type { MediaRequest } from '../../contract/media-request.ts';
import type { ImageHeader, Size } from '../../formats/image-header.ts';
import {
  type AvMetadata,
  MAX_FRAME_EDGE_PX,
  MAX_FRAME_PIXELS,
} from '../../formats/video/av-metadata.ts';
import type { RenderJob } from '../ports.ts';
import { estimateCost, estimatePosterCost, type RenderCost } from './render-cost.ts';
import { orientedSize, targetSize } from './target-size.ts';

const SRGB_GAMMA = 2.2;

/** Difference to 1 up to which exponents count as 1 (`PNG_GAMMA_THRESHOLD` of libpng). */
const GAMMA_TOLERANCE = 0.05;

/** Estimated time above which a render is rejected, in multiples of the deadline (contract §5). */
const MAX_EXPECTED_DEADLINES = 2;

/** Limits of renders (contract §6). */
export interface RenderLimits {
  readonly maxInputPixels: number;
  /** Maximum pixels, summed over the frames. */
  readonly maxAnimationPixels: number;
  /** Maximum pixels of a JPEG, multiplied by its scans. */
  readonly maxScanPixels: number;
  /** Maximum edge; decoders and filters of libvips support a million pixels (vips_reduceh, `hshrink`). */
  readonly maxEdgePx: number;
  /** Maximum frames, decoded or not. */
  readonly maxFrames: number;
  readonly timeoutMs: number;
  readonly maxResultBytes: number;
  /** Effort of the WebP encoder, 0 to 6. */
  readonly webpEffort: number;
}

export type Plan =
  | { readonly kind: 'unmodified' }
  | {
      readonly kind: 'refuse';
      readonly code:
        | 'UNSUPPORTED_MEDIA_TYPE'
        | 'MEDIA_TOO_LARGE'
        | 'UNPROCESSABLE_MEDIA'
        | 'TRANSFORM_TIMEOUT';
      readonly reason: string;
    }
  | RenderPlan;

export interface RenderPlan {
  readonly kind: 'render';
  readonly job: RenderJob;
  readonly cost: RenderCost;
  /** Whether only the quality changes; the original then replaces a result that is not smaller. */
  readonly isOnlyQuality: boolean;
}

/** Plans by the header of an original and the request (contract §3); pure. */
export function planMedia(header: ImageHeader, request: MediaRequest, limits: RenderLimits): Plan {
  if (header.frames > limits.maxFrames) {
    return tooLarge(`${header.frames} frames, at most ${limits.maxFrames}`);
  }
  if (request.isAnimated && header.animationError !== undefined) {
    return { kind: 'refuse', code: 'UNPROCESSABLE_MEDIA', reason: header.animationError };
  }
  const wanted = request.isAnimated ? header.animation : undefined;
  const { encodesAs, animatesAs = encodesAs } = sourceFormats[header.format];
  const format = request.format ?? (wanted === undefined ? encodesAs : animatesAs);
  const animation = outputFormats[format].canAnimate ? wanted : undefined;
  const original = orientedSize(header);
  const { size, resize } = targetSize(original, request, format);
  // The result would differ only in quality.
  const isSamePicture =
    header.format === format && header.animation === animation && resize === 'none';
  const couldBeUnmodified = isSamePicture && header.isClean;
  const quality =
    request.highFor === 'lossy originals' && header.hasLoss === true ? 'high' : request.quality;
  const keepsQuality = isLossless(format, quality);
  const isUnmodified = couldBeUnmodified && keepsQuality;

  // The client decodes all frames of an unmodified animation.
  const framesDecoded = isUnmodified ? header.frames : (animation?.delaysMs.length ?? 1);
  const framePixels = header.codedPixels ?? header.widthPx * header.heightPx;
  const pixels = framePixels * framesDecoded;
  const maxPixels = framesDecoded > 1 ? limits.maxAnimationPixels : limits.maxInputPixels;
  if (pixels > maxPixels) return tooLarge(`${pixels} pixels, at most ${maxPixels}`);
  if (framePixels > limits.maxInputPixels) {
    return tooLarge(`${framePixels} pixels in a frame, at most ${limits.maxInputPixels}`);
  }
  const edgePx = Math.max(original.widthPx, original.heightPx);
  if (edgePx > limits.maxEdgePx)
    return tooLarge(`an edge of ${edgePx}, at most ${limits.maxEdgePx}`);
  const scanPixels = framePixels * (header.scans ?? 0);
  if (scanPixels > limits.maxScanPixels) {
    return tooLarge(`${scanPixels} pixels in all scans, at most ${limits.maxScanPixels}`);
  }
  if (animation === undefined && header.dataError !== undefined) {
    return { kind: 'refuse', code: 'UNPROCESSABLE_MEDIA', reason: header.dataError };
  }
  if (isUnmodified) return { kind: 'unmodified' };

  const gamma = ownGamma(header);
  const job: RenderJob = {
    source: header.format,
    animation,
    originalSize: { widthPx: header.widthPx, heightPx: header.heightPx },
    orientation: header.orientation,
    gamma,
    codePoints: header.codePoints,
    isPlain: header.isPlain === true && gamma === undefined,
    isLossy: header.hasLoss === true,
    isRewrite: isSamePicture && keepsQuality && header.isRewritable === true,
    resize,
    shrinksOnLoad: !keepsQuality,
    size,
    format,
    quality,
    webpEffort: limits.webpEffort,
    maxInputPixels: maxPixels,
    maxResultBytes: limits.maxResultBytes,
  };
  const cost = estimateCost(header, job);
  return planRender(job, cost, limits, couldBeUnmodified);
}

/** Plans by the metadata of a video and the request (contract §12); pure. */
export function planPoster(
  metadata: AvMetadata,
  request: MediaRequest,
  limits: RenderLimits,
): Plan {
  const { video, posterError } = metadata;
  const { format, highFor } = request;
  const quality = highFor === undefined ? request.quality : 'high';
  if (format === undefined) return unsupported('A poster needs a format.');
  if (posterError !== undefined) return { kind: 'refuse', ...posterError };
  if (video?.codec === undefined) return unsupported('The video has no supported track.');
  const { codec, codedSize, size: square, orientation } = video;
  const maxPixels = Math.min(MAX_FRAME_PIXELS, limits.maxInputPixels);
  const maxEdgePx = Math.min(MAX_FRAME_EDGE_PX, limits.maxEdgePx);
  const isWithin = fits(codedSize, maxPixels, maxEdgePx);
  if (!isWithin || !fits(square, limits.maxInputPixels, limits.maxEdgePx))
    return tooLarge(`a frame of ${codedSize.widthPx}x${codedSize.heightPx} px`);
  const original = orientedSize({ ...square, orientation });
  const { size, resize } = targetSize(original, request, format);
  const job: RenderJob = {
    source: 'video',
    animation: undefined,
    originalSize: square,
    orientation,
    gamma: undefined,
    isLossy: true,
    isRewrite: false,
    resize,
    shrinksOnLoad: false,
    size,
    format,
    quality,
    webpEffort: limits.webpEffort,
    maxInputPixels: limits.maxInputPixels,
    maxResultBytes: limits.maxResultBytes,
  };
  return planRender(job, estimatePosterCost(codec, codedSize, job), limits, false);
}

function fits({ widthPx, heightPx }: Size, maxPixels: number, maxEdgePx: number): boolean {
  return widthPx * heightPx <= maxPixels && Math.max(widthPx, heightPx) <= maxEdgePx;
}

export function unsupported(reason: string): Plan {
  return { kind: 'refuse', code: 'UNSUPPORTED_MEDIA_TYPE', reason };
}

/** Plans a render, unless it would take too long. */
function planRender(
  job: RenderJob,
  cost: RenderCost,
  { timeoutMs }: RenderLimits,
  isOnlyQuality: boolean,
): Plan {
  if (cost.minMs > timeoutMs) {
    return tooLarge(`at least ${Math.round(cost.minMs)} ms of work, at most ${timeoutMs}`);
  }
  if (cost.typicalMs > timeoutMs * MAX_EXPECTED_DEADLINES) {
    const reason = `about ${Math.round(cost.typicalMs)} ms of work estimated, at most ${timeoutMs}`;
    return { kind: 'refuse', code: 'TRANSFORM_TIMEOUT', reason };
  }
  return { kind: 'render', job, cost, isOnlyQuality };
}

function tooLarge(reason: string): Plan {
  return { kind: 'refuse', code: 'MEDIA_TOO_LARGE', reason };
}

/** Returns the transfer function that a PNG declares (`gAMA`), unless it is that of sRGB. */
function ownGamma({ gamma }: ImageHeader): number | undefined {
  if (gamma === undefined) return undefined;
  return Math.abs(gamma * SRGB_GAMMA - 1) < GAMMA_TOLERANCE ? undefined : gamma;
}
