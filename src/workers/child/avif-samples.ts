import { BT_601, readAvifCoding } from '../../formats/heif/avif-coding.ts';
import type { HeifFile } from '../../formats/heif/heif-file.ts';
import type { SampleCoding } from './colour-conversion.ts';
import { mapToSrgb } from './video/map-to-srgb.ts';

/** Original that libvips can read, with the conversion of samples that libvips lacks. */
export interface ReadableOriginal {
  readonly bytes: Uint8Array;
  readonly coding?: SampleCoding | undefined;
}

/**
 * Reads the properties that libheif leaves to us: limited range, premultiplied colours, code points other than sRGB.
 * Sets an unspecified matrix, for which libheif would ignore the range of `colr`.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` if an image has no sequence header
 */
export function readAvifSamples(avif: Uint8Array, heif: HeifFile): ReadableOriginal {
  const { profile, codePoints, unspecifiedMatrixAt, ...ranges } = readAvifCoding(heif);
  const mapColours = profile === undefined ? mapToSrgb(codePoints) : undefined;
  const { isLimitedGrey, isLimitedAlpha, isPremultiplied } = ranges;
  const isConverted = mapColours || isLimitedGrey || isLimitedAlpha || isPremultiplied;
  return {
    bytes: unspecifiedMatrixAt === undefined ? avif : withMatrix(avif, unspecifiedMatrixAt),
    coding: isConverted ? { ...ranges, mapColours, profile } : undefined,
  };
}

function withMatrix(avif: Uint8Array, at: number): Uint8Array {
  const copy = Buffer.from(avif);
  copy.writeUInt16BE(BT_601, at);
  return copy;
}
