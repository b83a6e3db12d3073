import type { Sharp } from 'sharp';
import { outputFormats } from '../../contract/image-formats.ts';
import type { RenderJob } from '../../pipeline/render/render-job.ts';

/** Scales to the planned size, or scales to cover it and crops to the centre. */
export function resize(image: Sharp, { resize: kind, size, shrinksOnLoad }: RenderJob): Sharp {
  if (kind === 'none') return image;
  return image.resize({
    width: size.widthPx,
    height: size.heightPx,
    fit: kind === 'crop' ? 'cover' : 'fill',
    position: 'centre',
    fastShrinkOnLoad: shrinksOnLoad,
  });
}

/** Puts white under transparent pixels if the format has no alpha. */
export function flatten(image: Sharp, { format }: RenderJob): Sharp {
  return outputFormats[format].hasAlpha ? image : image.flatten({ background: '#ffffff' });
}
