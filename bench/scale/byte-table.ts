import type { OutputFormat, Quality, SourceFormat } from '../../src/contract/image-formats.ts';
import type { ContentKind } from '../trace/shapes.ts';

/** What is in a picture, as far as its bytes depend on it. */
export type Content = 'photo' | 'drawing';

/** Bytes of results of one sort, by size. */
export interface ResultBytesRow {
  readonly content: Content;
  readonly format: OutputFormat;
  readonly quality: Quality;
  readonly isAnimated: boolean;
  /** Pixels of a frame and bytes of a frame, the smallest first. */
  readonly points: readonly (readonly [pixels: number, bytes: number])[];
}

/** Bytes of originals of one sort. */
export interface OriginalBytesRow {
  readonly content: Content;
  readonly format: SourceFormat;
  readonly isAnimated: boolean;
  readonly bytesPerPixel: number;
}

/** Whether a kind shows what was drawn, or photographed and filmed. */
export function contentOf(kind: ContentKind): Content {
  return kind === 'custom emoji' || kind === 'sticker' ? 'drawing' : 'photo';
}

/** Bytes at a size between the measured ones, on a straight line of their logarithms. */
export function interpolate(points: ResultBytesRow['points'], pixels: number): number {
  const after = points.findIndex(([measured]) => measured >= pixels);
  const high = Math.max(1, after < 0 ? points.length - 1 : after);
  const [highPixels, highBytes] = points[Math.min(high, points.length - 1)] ?? [1, 1];
  const [lowPixels, lowBytes] = points[high - 1] ?? [1, 1];
  if (lowPixels === highPixels) return lowBytes;
  const slope = Math.log(highBytes / lowBytes) / Math.log(highPixels / lowPixels);
  return lowBytes * (pixels / lowPixels) ** slope;
}
