import { MediaError } from '../../../contract/errors.ts';
import { corruptMedia } from '../../../formats/byte-reader.ts';
import { readHeifColour } from '../../../formats/heif/heif-colour.ts';
import { findAlphaPlanes } from '../../../formats/heif/heif-derivation.ts';
import { openHeif } from '../../../formats/heif/heif-file.ts';
import { readTransforms, type Transform } from '../../../formats/heif/heif-properties.ts';
import type { Size } from '../../../formats/image-facts.ts';
import { formatStoredPng } from '../../../formats/png/png-chunks.ts';
import type { RenderJob } from '../../../pipeline/ports.ts';
import { checkDecodedSize } from '../open-original.ts';
import { type CodedPicture, type RgbPixels, toRgb, unmultiply } from '../picture-to-rgb.ts';
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
    const properties = heif.propertiesOf(heif.primary);
    const view = viewOf(pixels, readTransforms(heif.meta.reader, properties));
    checkDecodedSize(view, originalSize);
    const { widthPx, heightPx } = view;
    const { channels } = pixels;
    const row = (index: number): Uint8Array | Uint8ClampedArray =>
      readRow(pixels, view.first + index * view.stepDown, view.stepRight, widthPx);
    return formatStoredPng({ widthPx, heightPx, channels, row }, profile);
  } catch (error) {
    // Errors of the WebAssembly sandbox: an access out of bounds, or an exhausted stack or memory.
    if (!(error instanceof WebAssembly.RuntimeError || error instanceof RangeError)) throw error;
    throw new MediaError('UNPROCESSABLE_MEDIA', { cause: error });
  }
}

function hasSizeOf({ planes: [one] }: CodedPicture, { planes: [other] }: CodedPicture): boolean {
  return one?.widthPx === other?.widthPx && one?.heightPx === other?.heightPx;
}

function readRow(
  { samples, channels }: RgbPixels,
  first: number,
  step: number,
  widthPx: number,
): Uint8ClampedArray {
  if (step === 1) return samples.subarray(first * channels, (first + widthPx) * channels);
  const row = new Uint8ClampedArray(widthPx * channels);
  for (let at = 0, from = first * channels; at < row.length; at += channels) {
    for (let channel = 0; channel < channels; channel += 1) {
      row[at + channel] = samples[from + channel] ?? 0;
    }
    from += step * channels;
  }
  return row;
}

/** Mapping from shown pixels to the pixels of a picture. */
interface View extends Size {
  /** Index of the pixel that is shown first, counted row by row. */
  readonly first: number;
  /** Distance to the pixel that is shown to the right, and to the one below. */
  readonly stepRight: number;
  readonly stepDown: number;
}

/** Returns the view of a picture after its transforms, one after the other; moves no pixel. */
function viewOf({ widthPx, heightPx }: Size, transforms: readonly Transform[]): View {
  let view: View = { widthPx, heightPx, first: 0, stepRight: 1, stepDown: widthPx };
  for (const transform of transforms) {
    if (transform.kind === 'crop') view = crop(view, transform.size, transform.offset);
    else if (transform.kind === 'mirror') view = mirror(view, transform.swaps);
    else for (let turns = transform.quarterTurnsLeft; turns > 0; turns -= 1) view = turnLeft(view);
  }
  return view;
}

function crop(view: View, size: Size, [xPx, yPx]: readonly [number, number]): View {
  const left = Math.floor(xPx + (view.widthPx - size.widthPx) / 2);
  const top = Math.floor(yPx + (view.heightPx - size.heightPx) / 2);
  const isInside =
    left >= 0 &&
    top >= 0 &&
    left + size.widthPx <= view.widthPx &&
    top + size.heightPx <= view.heightPx;
  if (!isInside) throw corruptMedia('HEIF: an aperture that leaves the picture');
  return { ...view, ...size, first: view.first + left * view.stepRight + top * view.stepDown };
}

/** Turns a view to the left: its right column becomes the first row. */
function turnLeft({ widthPx, heightPx, first, stepRight, stepDown }: View): View {
  return {
    widthPx: heightPx,
    heightPx: widthPx,
    first: first + (widthPx - 1) * stepRight,
    stepRight: stepDown,
    stepDown: -stepRight,
  };
}

function mirror(view: View, swaps: 'top and bottom' | 'left and right'): View {
  const { widthPx, heightPx, first, stepRight, stepDown } = view;
  return swaps === 'left and right'
    ? { ...view, first: first + (widthPx - 1) * stepRight, stepRight: -stepRight }
    : { ...view, first: first + (heightPx - 1) * stepDown, stepDown: -stepDown };
}
