import { MediaError } from '../../contract/errors.ts';
import { checkStill, prepareForDecoder, rewriteContainer } from '../../formats/read-image-facts.ts';
import type { RenderJob } from '../../pipeline/render/render-job.ts';
import { checkTiles } from './check-tiles.ts';
import { encodeStill } from './encode.ts';
import { decodeHeic } from './heic/decode-heic.ts';
import { decodeStrictly, openStill } from './open-original.ts';
import { renderAnimation } from './render-animation.ts';
import { flatten, resize } from './transform.ts';

/**
 * Renders one job (contract §3): decode, orient, resize, convert to sRGB, encode without metadata.
 *
 * @returns the encoded image
 * @throws MediaError `UNPROCESSABLE_MEDIA` or `MEDIA_TOO_LARGE`; any other error is a bug of ours
 */
export async function render(original: Uint8Array, job: RenderJob): Promise<Uint8Array> {
  const source = await makeReadable(original, job);
  const encoded = await produce(source, job);
  if (encoded.byteLength > job.maxResultBytes) {
    const cause = new Error(`${encoded.byteLength} bytes encoded, at most ${job.maxResultBytes}`);
    throw new MediaError('MEDIA_TOO_LARGE', { cause });
  }
  return encoded;
}

/** What libvips can read of an original, and what does it no harm. */
async function makeReadable(original: Uint8Array, job: RenderJob): Promise<Uint8Array> {
  if (job.source === 'heic') return decodeHeic(original, job);
  const readable = prepareForDecoder(original, job.orientation, job.originalSize);
  if (job.animation === undefined) await checkStill(readable);
  if (job.source === 'avif') await checkTiles(readable, job);
  return readable;
}

async function produce(source: Uint8Array, job: RenderJob): Promise<Uint8Array> {
  const { animation, originalSize } = job;
  if (job.isRewrite) return rewriteContainer(source, originalSize, animation);
  return animation === undefined
    ? renderStill(source, job)
    : renderAnimation(source, job, animation);
}

function renderStill(original: Uint8Array, job: RenderJob): Promise<Uint8Array> {
  return decodeStrictly(original, job, undefined, async (bytes, strictness) => {
    const shape = { size: job.originalSize, orientation: job.orientation };
    const image = await openStill(bytes, job, shape, strictness);
    return encodeStill(flatten(resize(image, job), job), job);
  });
}
