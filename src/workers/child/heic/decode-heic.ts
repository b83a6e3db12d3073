import type { Sharp } from 'sharp';
import { MediaError } from '../../../contract/errors.ts';
import { corruptMedia } from '../../../formats/byte-reader.ts';
import { readHeifColour } from '../../../formats/heif/heif-colour.ts';
import { findAlphaPlanes } from '../../../formats/heif/heif-derivation.ts';
import { openHeif } from '../../../formats/heif/heif-file.ts';
import { readTransforms, type Transform } from '../../../formats/heif/heif-properties.ts';
import { formatStoredPng } from '../../../formats/png/png-chunks.ts';
import type { RenderJob } from '../../../pipeline/ports.ts';
import { checkDecodedSize } from '../open-original.ts';
import { type CodedPicture, toRgb, unmultiply } from '../picture-to-rgb.ts';
import { fromPixels, type Pixels, toPixels } from '../pixels.ts';
import { composePicture } from './compose-picture.ts';
import { createLibde265 } from './libde265.ts';

/**
 * Decodes the primary image of a HEIC, with its crops, turns and mirrors applied, to a PNG of the same samples with its
 * profile; further steps are those of any PNG.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` if it cannot be decoded, or not to the planned size
 */
export async function decodeHeic(
  original: Uint8Array,
  { originalSize }: RenderJob,
): Promise<Uint8Array> {
  const heif = openHeif(original);
  if (heif === undefined) throw new Error('Expected a file with a meta box');
  const libde265 = await createLibde265();
  try {
    const { profile, coding } = readHeifColour(heif);
    const picture = { ...composePicture(libde265, heif, heif.primary), ...coding };
    const [plane] = findAlphaPlanes(heif, heif.primary);
    const alpha = plane === undefined ? undefined : composePicture(libde265, heif, plane);
    if (alpha && !hasSizeOf(alpha, picture)) throw corruptMedia('HEIF: alpha of another size');
    const pixels = toRgb(picture, alpha);
    if (heif.referrersOf(plane ?? 0, 'prem').includes(heif.primary)) unmultiply(pixels);
    let shown: Pixels = { ...pixels, data: Buffer.from(pixels.samples.buffer) };
    for (const transform of readTransforms(heif.meta.reader, heif.propertiesOf(heif.primary))) {
      shown = await toPixels(apply(transform, shown));
    }
    checkDecodedSize(shown, originalSize);
    return formatStoredPng({ ...shown, channels: pixels.channels }, profile);
  } catch (error) {
    // Errors of the WebAssembly sandbox: an access out of bounds, or an exhausted stack or memory.
    if (!(error instanceof WebAssembly.RuntimeError || error instanceof RangeError)) throw error;
    throw new MediaError('UNPROCESSABLE_MEDIA', { cause: error });
  }
}

function hasSizeOf({ planes: [one] }: CodedPicture, { planes: [other] }: CodedPicture): boolean {
  return one?.widthPx === other?.widthPx && one?.heightPx === other?.heightPx;
}

/** @throws MediaError `UNPROCESSABLE_MEDIA` if an aperture leaves the picture */
function apply(transform: Transform, pixels: Pixels): Sharp {
  const image = fromPixels(pixels);
  if (transform.kind === 'turn') return image.rotate(-90 * transform.quarterTurnsLeft);
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
