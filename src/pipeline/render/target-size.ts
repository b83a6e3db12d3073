import { type OutputFormat, outputFormats } from '../../contract/image-formats.ts';
import type { MediaRequest } from '../../contract/media-request.ts';
import type { ImageHeader, Size } from '../../formats/image-header.ts';
import type { RenderJob } from '../ports.ts';

/** Returns the size of a rendering, and the kind of resize. */
export function targetSize(
  original: Size,
  { widthPx, heightPx }: MediaRequest,
  format: OutputFormat,
): Pick<RenderJob, 'size' | 'resize'> {
  const isCrop = widthPx !== undefined && heightPx !== undefined;
  const size = isCrop
    ? fitBox(original, { widthPx, heightPx })
    : fitProportionally(original, { widthPx, heightPx }, outputFormats[format].maxEdgePx);
  const isSame = size.widthPx === original.widthPx && size.heightPx === original.heightPx;
  return { size, resize: isSame ? 'none' : isCrop ? 'crop' : 'scale' };
}

/** Returns the size after orientation; EXIF orientations 5 to 8 swap the edges (EXIF 2.32 §4.6.4). */
export function orientedSize({
  widthPx,
  heightPx,
  orientation,
}: Pick<ImageHeader, 'widthPx' | 'heightPx' | 'orientation'>): Size {
  return orientation >= 5 ? { widthPx: heightPx, heightPx: widthPx } : { widthPx, heightPx };
}

/**
 * Returns the size of an original scaled proportionally to a width or a height, never enlarged (contract §3).
 *
 * @param original size after orientation
 * @param bounds at most one edge; without one, the original keeps its size
 * @param maxEdgePx maximum of the output format, which longer results are scaled down to
 */
export function fitProportionally(
  original: Size,
  bounds: { readonly widthPx: number | undefined; readonly heightPx: number | undefined },
  maxEdgePx: number,
): Size {
  const { widthPx, heightPx } = original;
  const fitted =
    bounds.heightPx === undefined
      ? scaleToWidth(original, Math.min(bounds.widthPx ?? widthPx, widthPx))
      : scaleToHeight(original, Math.min(bounds.heightPx, heightPx));
  if (fitted.widthPx > maxEdgePx && fitted.widthPx >= fitted.heightPx) {
    return scaleToWidth(original, maxEdgePx);
  }
  return fitted.heightPx > maxEdgePx ? scaleToHeight(original, maxEdgePx) : fitted;
}

/** Returns the size of a centre crop to a box (contract §3), scaled down if the box exceeds the original. */
export function fitBox(original: Size, box: Size): Size {
  const scale = Math.min(1, original.widthPx / box.widthPx, original.heightPx / box.heightPx);
  return {
    widthPx: atLeastOne(box.widthPx * scale),
    heightPx: atLeastOne(box.heightPx * scale),
  };
}

function scaleToWidth({ widthPx, heightPx }: Size, targetPx: number): Size {
  return { widthPx: targetPx, heightPx: atLeastOne((heightPx * targetPx) / widthPx) };
}

function scaleToHeight({ widthPx, heightPx }: Size, targetPx: number): Size {
  return { widthPx: atLeastOne((widthPx * targetPx) / heightPx), heightPx: targetPx };
}

function atLeastOne(lengthPx: number): number {
  return Math.max(1, Math.round(lengthPx));
}
