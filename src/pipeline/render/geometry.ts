import type { Size } from '../../formats/image-facts.ts';

/**
 * The size of an original scaled in proportion to fit a width or a height, never enlarged (contract §3).
 *
 * @param original size after orientation
 * @param bounds at most one edge; with none the original keeps its size
 * @param maxEdgePx what the output format can hold; a longer result is scaled down further
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

/**
 * The size of a centre crop to the aspect ratio of a box (contract §3): the box itself, or, where it
 * exceeds the original, the box scaled down until it fits.
 */
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
