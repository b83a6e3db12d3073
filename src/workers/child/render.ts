import { MediaError } from '../../contract/errors.ts';
import { containerOf } from '../../formats/containers.ts';
import { findTiles } from '../../formats/heif/heif-derivation.ts';
import { type HeifFile, openHeif } from '../../formats/heif/heif-file.ts';
import { withPrimaryItem } from '../../formats/heif/heif-preparation.ts';
import type { RenderJob } from '../../pipeline/ports.ts';
import { FAILURE_CODES, type FailureCode } from '../protocol.ts';
import { type ReadableOriginal, readAvifSamples } from './avif-samples.ts';
import { checkResultSize, encodeStill } from './encode.ts';
import { decodeGif } from './gif/decode-gif.ts';
import { decodeHeic } from './heic/decode-heic.ts';
import { decodeStrictly, openOriginal, openStill } from './open-original.ts';
import { fromPixels, resize } from './pixels.ts';
import { renderAnimation } from './render-animation.ts';

/**
 * Renders one job (contract §3): decode, orient, resize, convert to sRGB, encode. Errors except MediaErrors are bugs.
 */
export async function render(original: Uint8Array, job: RenderJob): Promise<Uint8Array> {
  try {
    const source = await makeReadable(original, job);
    return checkResultSize(await produce(source, job), job);
  } catch (error) {
    if (!isWebpError(error) || hasRoomForWebp(job)) throw error;
    throw new MediaError('MEDIA_TOO_LARGE', { cause: error });
  }
}

/** Memory of libwebp and libvips per pixel of a WebP, in bytes; 14 were measured at 24 megapixels. */
const WEBP_BYTES_PER_PIXEL = 16;

function isWebpError(error: unknown): boolean {
  return WEBP_FAILURE.test(String(error instanceof MediaError ? error.cause : error));
}

/** Whether a WebP of the original's size fits into memory, which libwebp's errors do not reveal. */
function hasRoomForWebp({ originalSize: { widthPx, heightPx } }: RenderJob): boolean {
  try {
    Buffer.allocUnsafeSlow(widthPx * heightPx * WEBP_BYTES_PER_PIXEL);
    return true;
  } catch {
    return false;
  }
}

async function makeReadable(original: Uint8Array, job: RenderJob): Promise<ReadableOriginal> {
  if (job.source === 'heic') return { bytes: await decodeHeic(original, job) };
  const container = containerOf(original);
  const readable = container?.prepare(original, job.orientation) ?? original;
  // libvips does not decode rows below a crop.
  if (job.resize === 'crop') container?.checkUndecoded?.(original);
  const heif = job.source === 'avif' ? openHeif(readable) : undefined;
  if (heif === undefined) return { bytes: readable };
  await checkTiles(readable, heif, job);
  return readAvifSamples(readable, heif);
}

/**
 * First decodes each tile of an AVIF grid alone, because libvips' libheif renders damaged ones green or transparent.
 * This doubles the decoding time, but few AVIFs are grids. @throws MediaError `UNPROCESSABLE_MEDIA`
 */
async function checkTiles(avif: Uint8Array, heif: HeifFile, job: RenderJob): Promise<void> {
  for (const tile of findTiles(heif, heif.primary)) {
    const image = openOriginal(withPrimaryItem(avif, heif, tile), job, undefined, 'warning');
    try {
      await image.extract({ left: 0, top: 0, width: 1, height: 1 }).raw().toBuffer();
    } catch (cause) {
      throw new MediaError('UNPROCESSABLE_MEDIA', { cause });
    }
  }
}

async function produce(source: ReadableOriginal, job: RenderJob): Promise<Uint8Array> {
  const { animation, originalSize } = job;
  const { bytes } = source;
  const rewrite = job.isRewrite ? containerOf(bytes)?.rewrite : undefined;
  if (rewrite !== undefined) return rewrite(bytes, originalSize, animation);
  return animation === undefined
    ? renderStill(source, job)
    : renderAnimation(bytes, job, animation);
}

async function renderStill(
  { bytes, coding }: ReadableOriginal,
  job: RenderJob,
): Promise<Uint8Array> {
  if (job.source === 'gif') {
    const { value: first } = await decodeGif(bytes, job, 1).next();
    if (first === undefined) throw new Error('Expected a frame or an error');
    return encodeStill(resize(fromPixels(first), job), job);
  }
  return decodeStrictly(bytes, job, undefined, async (original, strictness) => {
    const still = { size: job.originalSize, orientation: job.orientation, coding };
    const image = await openStill(original, job, still, strictness);
    return encodeStill(resize(image, job), job);
  });
}

/**
 * Messages of failed allocations, by alternative: libvips, libpng and V8's WebAssembly; libjpeg and zlib; libheif; sharp;
 * V8; C++. The word "memory" alone would match traps ("memory access out of bounds").
 */
const OUT_OF_MEMORY =
  /(out of|insufficient) memory|memory allocation error|could not allocate (enough )?memory|array buffer allocation failed|\bbad_alloc\b/i;

/** libwebp's message for any failure; if memory is low, usually a failed allocation. */
const WEBP_FAILURE = /\bwebp(save|2vips)\w*: /;

/** GLib's messages and Node's codes if the machine has no thread or descriptor left. */
const NO_THREAD = /Error creating thread/;
const UNAVAILABLE: readonly unknown[] = ['EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM'];

/** Returns the reported code and cause. A failed allocation is the original's fault: all allocations are limited. */
export function failureOf(error: unknown): { readonly code: FailureCode; readonly cause: unknown } {
  const cause = error instanceof MediaError ? (error.cause ?? error) : error;
  const code = error instanceof MediaError && FAILURE_CODES.find((each) => each === error.code);
  const text = String(cause);
  if (OUT_OF_MEMORY.test(text)) return { code: 'MEDIA_TOO_LARGE', cause };
  const systemCode = cause instanceof Error && 'code' in cause && cause.code;
  const isOverload = NO_THREAD.test(text) || UNAVAILABLE.includes(systemCode);
  if (isOverload) return { code: 'OVERLOADED', cause };
  if (code) return { code, cause };
  return { code: WEBP_FAILURE.test(text) ? 'UNPROCESSABLE_MEDIA' : 'INTERNAL_ERROR', cause };
}
