import type { RenderJob } from '../pipeline/plan.ts';
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
  return job.animation === undefined
    ? renderStill(original, job)
    : renderAnimation(original, job, job.animation);
}

function renderStill(original: Uint8Array, job: RenderJob): Promise<Uint8Array> {
  const frames = { first: 0, count: 1 };
  return decodeStrictly(original, job, frames, (strictness) => {
    const image = openOriginal(original, job, frames, strictness);
    if (job.orientation !== 1) image.autoOrient();
    return flatten(resize(applyGamma(image, job), job), job)
      .toColourspace('srgb')
      .toFormat(job.format, job.encoder)
      .toBuffer();
  });
}
