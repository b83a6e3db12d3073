import { deflateSync } from 'node:zlib';
import type { Size } from '../image-facts.ts';
import { formatPng, formatPngChunk } from './png-chunks.ts';

/** Pixels in memory: 8 bits per sample, without alpha (3 channels) or with alpha (4). */
export interface StoredPixels extends Size {
  readonly channels: 3 | 4;
  /** Returns the bytes of a row; called once for each, from the top. */
  readonly row: (index: number) => Uint8Array | Uint8ClampedArray;
}

/** Colour types of PNG (3rd edition §11.2.1). */
const COLOUR_TYPES = { 3: 2, 4: 6 };

/**
 * Wraps pixels in an uncompressed PNG: the only form in which libvips takes pixels from memory together with their
 * profile.
 *
 * @param profile an ICC profile of the samples; `undefined` for sRGB
 */
export function formatStoredPng(pixels: StoredPixels, profile: Uint8Array | undefined): Buffer {
  const { widthPx, heightPx, channels, row } = pixels;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(widthPx, 0);
  header.writeUInt32BE(heightPx, 4);
  header.set([8, COLOUR_TYPES[channels]], 8);
  const rowBytes = 1 + widthPx * channels;
  // Each row begins with its filter type: none.
  const filtered = Buffer.alloc(rowBytes * heightPx);
  for (let index = 0; index < heightPx; index += 1) filtered.set(row(index), index * rowBytes + 1);
  const name = Buffer.from('profile\0\0', 'latin1');
  return formatPng([
    formatPngChunk('IHDR', [header]),
    ...(profile === undefined ? [] : [formatPngChunk('iCCP', [name, deflateSync(profile)])]),
    formatPngChunk('IDAT', [deflateSync(filtered, { level: 0 })]),
    formatPngChunk('IEND', []),
  ]);
}
