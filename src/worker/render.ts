import { isGif } from '../media/header/gif-header.ts';
import type { RenderJob } from '../pipeline/plan.ts';
import { repairGif } from './gif-repair.ts';
import { decodeStrictly, openOriginal } from './open-original.ts';
import { renderAnimation } from './render-animation.ts';
import { applyGamma, flatten, resize } from './transform.ts';

/**
 * Renders one job (spec §3): decode, orient, resize, convert to sRGB, encode without metadata.
 *
 * @returns the encoded image
 * @throws MediaError `UNPROCESSABLE_MEDIA` or `MEDIA_TOO_LARGE`; any other error is a bug of ours
 */
export function render(original: Uint8Array, job: RenderJob): Promise<Uint8Array> {
  const source = isGif(original) ? repairGif(original, job.originalSize) : original;
  return job.animation === undefined
    ? renderStill(source, job)
    : renderAnimation(source, job, job.animation);
}

function renderStill(original: Uint8Array, job: RenderJob): Promise<Uint8Array> {
  const frames = { first: 0, count: 1 };
  return decodeStrictly(original, job, frames, (bytes, strictness) => {
    const image = openOriginal(bytes, job, frames, strictness);
    if (job.orientation !== 1) image.autoOrient();
    return flatten(resize(applyGamma(image, job), job), job)
      .toColourspace('srgb')
      .toFormat(job.format, job.encoder)
      .toBuffer();
  });
}
