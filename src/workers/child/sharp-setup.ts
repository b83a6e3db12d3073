import sharp from 'sharp';
import { sourceFormats } from '../../contract/image-formats.ts';

/** Loaders of libvips that may run: the formats of contract §3, from memory only. */
export const ALLOWED_LOADERS: readonly string[] = [
  ...new Set(Object.values(sourceFormats).map(({ loader }) => loader)),
];

/**
 * Configures sharp and libvips, once, at a worker's start.
 *
 * One thread per worker: the workers are the parallelism. No operation cache: no original is rendered twice in a row,
 * and nothing can leak from a cache into another result.
 */
export function setUpSharp(): void {
  sharp.concurrency(1);
  sharp.cache(false);
  sharp.block({ operation: ['VipsForeignLoad'] });
  sharp.unblock({ operation: [...ALLOWED_LOADERS] });
}
