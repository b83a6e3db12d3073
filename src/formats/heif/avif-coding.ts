import type { CodePoints } from '../image-header.ts';
import { readAv1Sequence } from './av1-sequence.ts';
import { readHeifColour } from './heif-colour.ts';
import { findAlphaPlanes, followIdentity } from './heif-derivation.ts';
import type { HeifFile } from './heif-file.ts';

/** Properties of an AVIF's samples that libheif 1.23 ignores or does not convert. */
export interface AvifCoding {
  readonly profile: Uint8Array | undefined;
  /** Colour space of an image without a profile. */
  readonly codePoints: CodePoints;
  /** Whether the image is grey with limited range, 16 to 235 in 8 bits. */
  readonly isLimitedGrey: boolean;
  readonly isLimitedAlpha: boolean;
  /** Whether colours are premultiplied by alpha (`prem`). */
  readonly isPremultiplied: boolean;
  /** Offset of an unspecified matrix in `colr`, which makes libheif ignore the range. */
  readonly unspecifiedMatrixAt: number | undefined;
}

/** Matrix code points: unspecified, and BT.601, which libavif uses instead. */
const UNSPECIFIED = 2;
export const BT_601 = 6;

/** Offset of the matrix in `colr`, after `nclx` and two code points. */
const MATRIX_AT = 8;

/** Reads the coding from `colr`, else from the AV1 image; that of alpha only from its AV1 image, as libavif does. */
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

/** Matrices that preserve red, green and blue exactly: identity, YCgCo-Re and YCgCo-Ro (ITU-T H.273 table 4). */
const EXACT_MATRICES: ReadonlySet<number> = new Set([0, 16, 17]);

/** Bits of the third byte of `av1C` (AV1 ISO Media File Format Binding §2.3.3). */
const av1cFlag = { monochrome: 0x10, subsampled: 0x08 } as const;

/** Whether an AVIF may be lossless. Its frame header would show it, but that takes half of the AV1 syntax to read. */
export function mayBeLosslessAvif(heif: HeifFile): boolean {
  const { reader } = heif.meta;
  const configuration = heif
    .propertiesOf(findCoded(heif, heif.primary))
    .find(({ type }) => type === 'av1C');
  if (configuration === undefined || configuration.end - configuration.start < 3) return true;
  const flags = reader.u8(configuration.start + 2);
  if ((flags & av1cFlag.monochrome) !== 0) return true;
  const { coding } = readHeifColour(heif);
  const isExact = coding === undefined || EXACT_MATRICES.has(coding.matrix);
  return (flags & av1cFlag.subsampled) === 0 && isExact;
}

/** Returns the coded image of an item, or the first one of a grid or overlay. */
function findCoded(heif: HeifFile, item: number): number {
  const [shown = item] = followIdentity(heif, item);
  const [first = shown] = heif.sourcesOf(shown);
  return first;
}
