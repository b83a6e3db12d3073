import { corruptMedia } from '../../../formats/byte-reader.ts';
import type { Transform } from '../../../formats/heif/heif-properties.ts';
import type { Size } from '../../../formats/image-facts.ts';

/** Mapping from shown pixels to the pixels of a picture. */
export interface View extends Size {
  /** Index of the pixel that is shown first, counted row by row. */
  readonly first: number;
  /** Distance to the pixel that is shown to the right, and to the one below. */
  readonly stepRight: number;
  readonly stepDown: number;
}

/**
 * Follows the transforms of a picture, one after the other: no pixel is moved for it.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` where an aperture leaves the picture
 */
export function viewOf({ widthPx, heightPx }: Size, transforms: readonly Transform[]): View {
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
