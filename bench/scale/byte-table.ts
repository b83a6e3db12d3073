import { readFileSync } from 'node:fs';
import type { ContentKind } from '../trace/shapes.ts';

const FILE = 'bench/scale/bytes.tsv';

/** What is in a picture, as far as its bytes depend on it. */
export type Content = 'photo' | 'drawing';

/** Bytes of pictures of one sort, by size. */
export interface BytesRow {
  readonly of: 'result' | 'original';
  readonly content: Content;
  readonly format: string;
  /** `any` of originals. */
  readonly quality: string;
  readonly motion: 'still' | 'animated';
  /** Pixels of a frame and bytes of a frame, the smallest first. */
  readonly points: readonly (readonly [pixels: number, bytes: number])[];
}

/** Reads the committed table. */
export function readByteTable(): readonly BytesRow[] {
  const lines = readFileSync(FILE, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => {
    const [of, content, format, quality, motion, points = ''] = line.split('\t');
    const pairs = points.split(' ').map((point) => point.split(':').map(Number));
    return { of, content, format, quality, motion, points: pairs } as unknown as BytesRow;
  });
}

/** Whether a kind shows what was drawn, or photographed and filmed. */
export function contentOf(kind: ContentKind): Content {
  return kind === 'custom emoji' || kind === 'sticker' ? 'drawing' : 'photo';
}

/** Bytes at a size between the measured ones, on a straight line of their logarithms. */
export function interpolate(points: BytesRow['points'], pixels: number): number {
  const after = points.findIndex(([measured]) => measured >= pixels);
  const high = Math.max(1, after < 0 ? points.length - 1 : after);
  const [highPixels, highBytes] = points[Math.min(high, points.length - 1)] ?? [1, 1];
  const [lowPixels, lowBytes] = points[high - 1] ?? [1, 1];
  if (lowPixels === highPixels) return lowBytes;
  const slope = Math.log(highBytes / lowBytes) / Math.log(highPixels / lowPixels);
  return lowBytes * (pixels / lowPixels) ** slope;
}
