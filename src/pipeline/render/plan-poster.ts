import type { MediaRequest } from '../../contract/media-request.ts';
import type { Size } from '../../formats/image-facts.ts';
import type { MovingFacts } from '../../formats/video/video-facts.ts';
import type { RenderJob } from '../ports.ts';
import {
  encoderSettings,
  isSameSize,
  orientedSize,
  type Plan,
  planRender,
  type RenderLimits,
  targetSize,
  tooLarge,
} from './plan.ts';
import { estimatePosterCost } from './render-cost.ts';

/** Most pixels of a frame, and most of an edge (contract §12). */
const MAX_FRAME_PIXELS = 35_651_584;
const MAX_EDGE_PX = 16_384;

/** Decides from the facts of a video and the request (contract §12); pure. */
export function planPoster(facts: MovingFacts, request: MediaRequest, limits: RenderLimits): Plan {
  const { video, fault } = facts;
  const { format, posterQuality: quality = request.quality } = request;
  if (format === undefined) return unsupported('A video without a format has no poster.');
  if (fault !== undefined) return { kind: 'refuse', ...fault };
  if (video?.codec === undefined) return unsupported('The video has no track that is decoded.');
  const { codec, codedSize, size: square, orientation } = video;
  const coded = {
    maxPixels: Math.min(MAX_FRAME_PIXELS, limits.maxInputPixels),
    maxEdgePx: Math.min(MAX_EDGE_PX, limits.maxEdgePx),
  };
  const isWithin =
    fits(codedSize, coded) &&
    fits(square, { maxPixels: limits.maxInputPixels, maxEdgePx: limits.maxEdgePx });
  if (!isWithin) return tooLarge(`a frame of ${codedSize.widthPx}x${codedSize.heightPx} px`);
  const original = orientedSize({ ...square, orientation });
  const { size, isCrop } = targetSize(original, request, format);
  const job: RenderJob = {
    source: 'video',
    animation: undefined,
    originalSize: square,
    orientation,
    gamma: undefined,
    isRewrite: false,
    resize: isSameSize(size, original) ? 'none' : isCrop ? 'crop' : 'scale',
    shrinksOnLoad: false,
    size,
    format,
    encoder: encoderSettings(format, quality, limits.webpEffort),
    maxInputPixels: limits.maxInputPixels,
    maxResultBytes: limits.maxResultBytes,
  };
  return planRender(job, estimatePosterCost(codec, codedSize, quality, job), limits, false);
}

function fits(
  { widthPx, heightPx }: Size,
  { maxPixels, maxEdgePx }: { readonly maxPixels: number; readonly maxEdgePx: number },
): boolean {
  return widthPx * heightPx <= maxPixels && Math.max(widthPx, heightPx) <= maxEdgePx;
}

function unsupported(reason: string): Plan {
  return { kind: 'refuse', code: 'UNSUPPORTED_MEDIA_TYPE', reason };
}
