import type { Sharp } from 'sharp';
import { MediaError } from '../../../contract/errors.ts';
import { corruptMedia } from '../../../formats/byte-reader.ts';
import { readHeifColour } from '../../../formats/heif/heif-colour.ts';
import { findAlphaPlanes, followIdentity } from '../../../formats/heif/heif-derivation.ts';
import { type HeifFile, openHeif } from '../../../formats/heif/heif-file.ts';
import { readTransforms, type Transform } from '../../../formats/heif/heif-properties.ts';
import { formatStoredPng } from '../../../formats/png/png-chunks.ts';
import type { RenderJob } from '../../../pipeline/ports.ts';
import { checkDecodedSize } from '../open-original.ts';
import { type AlphaPicture, type CodedPicture, toRgb } from '../picture-to-rgb.ts';
import { fromPixels, type Pixels, toPixels } from '../pixels.ts';
import { mapToSrgb } from '../video/map-to-srgb.ts';
import { composePicture } from './compose-picture.ts';
import { createLibde265, type Libde265 } from './libde265.ts';

/** Decodes the primary image of a HEIC, transforms applied, to a PNG in sRGB or with its profile. @throws MediaError */
export async function decodeHeic(
  original: Uint8Array,
  { originalSize }: RenderJob,
): Promise<Uint8Array> {
  const heif = openHeif(original);
  if (heif === undefined) throw new Error('Expected a file with a meta box');
  try {
    const images = followIdentity(heif, heif.primary);
    let shown = decodePixels(await createLibde265(), heif, images);
    const { profile } = readHeifColour(heif);
    const properties = images.flatMap(heif.propertiesOf);
    for (const transform of readTransforms(heif.meta.reader, properties)) {
      shown = await toPixels(apply(transform, shown));
    }
    checkDecodedSize(shown, originalSize);
    return formatStoredPng(shown, profile);
  } catch (error) {
    // WebAssembly throws these for out-of-bounds accesses, and for an exhausted stack or memory.
    if (!(error instanceof WebAssembly.RuntimeError || error instanceof RangeError)) throw error;
    throw new MediaError('UNPROCESSABLE_MEDIA', { cause: error });
  }
}

/** Decodes to RGB. The caller must drop decoder and planes: those of 24 megapixels fill a small worker. */
function decodePixels(
  libde265: Libde265,
  heif: HeifFile,
  [coded = heif.primary]: readonly number[],
): Pixels {
  const { profile, coding } = readHeifColour(heif);
  const picture = { ...composePicture(libde265, heif, coded), ...coding };
  const [plane] = findAlphaPlanes(heif, heif.primary);
  const alpha = plane === undefined ? undefined : decodeAlpha(libde265, heif, plane);
  if (alpha && !hasSameSize(alpha, picture)) throw corruptMedia('HEIF: alpha of another size');
  const mapColours = profile === undefined && coding ? mapToSrgb(coding) : undefined;
  return toRgb(picture, alpha, mapColours);
}

function decodeAlpha(libde265: Libde265, heif: HeifFile, plane: number): AlphaPicture {
  const isPremultiplied = heif.referrersOf(plane, 'prem').length > 0;
  return { ...composePicture(libde265, heif, plane), isPremultiplied };
}

function hasSameSize({ planes: [one] }: CodedPicture, { planes: [other] }: CodedPicture): boolean {
  return one?.widthPx === other?.widthPx && one?.heightPx === other?.heightPx;
}

/** @throws MediaError `UNPROCESSABLE_MEDIA` if an aperture leaves the picture */
function apply(transform: Transform, pixels: Pixels): Sharp {
  const image = fromPixels(pixels);
  if (transform.kind === 'rotation') return image.rotate(-90 * transform.quarterTurnsLeft);
  if (transform.kind === 'mirror') {
    return transform.swaps === 'left and right' ? image.flop() : image.flip();
  }
  const { widthPx: width, heightPx: height } = transform.size;
  const [xPx, yPx] = transform.offset;
  const left = Math.floor(xPx + (pixels.widthPx - width) / 2);
  const top = Math.floor(yPx + (pixels.heightPx - height) / 2);
  const isInside =
    left >= 0 && top >= 0 && left + width <= pixels.widthPx && top + height <= pixels.heightPx;
  if (!isInside) throw corruptMedia('HEIF: an aperture that leaves the picture');
  return image.extract({ left, top, width, height });
}
