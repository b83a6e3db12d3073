import type { CodePoints } from '../image-facts.ts';
import { readAv1Sequence } from './av1-sequence.ts';
import { readHeifColour } from './heif-colour.ts';
import { findAlphaPlanes, followIdentity } from './heif-derivation.ts';
import type { HeifFile } from './heif-file.ts';

/** Properties of an AVIF's samples that libheif 1.23 leaves in the samples, or in part ignores. */
export interface AvifCoding {
  readonly profile: Uint8Array | undefined;
  /** Colour space of an image without a profile. */
  readonly codePoints: CodePoints;
  /** Whether the image is grey and its samples have the limited range, 16 to 235 of 8 bits. */
  readonly isLimitedGrey: boolean;
  /** Whether the samples of its alpha have the limited range. */
  readonly isLimitedAlpha: boolean;
  /** Whether colours have been multiplied by alpha (`prem`). */
  readonly isPremultiplied: boolean;
  /** Offset of a matrix in `colr` that is unspecified: libheif ignores the range next to it. */
  readonly unspecifiedMatrixAt: number | undefined;
}

/** Code point of an unspecified matrix, and of BT.601's, which libavif uses instead. */
const UNSPECIFIED = 2;
export const BT_601 = 6;

/** Offset of the matrix in the payload of `colr`: behind `nclx` and two code points. */
const MATRIX_AT = 8;

/** Reads how samples are coded: by `colr`, else by the AV1 image itself; alpha by its AV1 image alone, as in libavif. */
export function readAvifCoding(heif: HeifFile): AvifCoding {
  const { profile, coding, codingBox } = readHeifColour(heif);
  const [plane] = findAlphaPlanes(heif, heif.primary);
  const sequence = readAv1Sequence(heif, findCoded(heif, heif.primary));
  const isUnspecified = coding?.matrix === UNSPECIFIED && !sequence.isMonochrome;
  return {
    profile,
    codePoints: coding ?? sequence,
    isLimitedGrey: sequence.isMonochrome && !(coding ?? sequence).isFullRange,
    isLimitedAlpha:
      plane !== undefined && !readAv1Sequence(heif, findCoded(heif, plane)).isFullRange,
    isPremultiplied: plane !== undefined && heif.referrersOf(plane, 'prem').length > 0,
    unspecifiedMatrixAt: isUnspecified && codingBox ? codingBox.start + MATRIX_AT : undefined,
  };
}

/** Returns the coded image that an item shows, or the first of a grid or an overlay. */
function findCoded(heif: HeifFile, item: number): number {
  const [shown = item] = followIdentity(heif, item);
  const [first = shown] = heif.sourcesOf(shown);
  return first;
}
