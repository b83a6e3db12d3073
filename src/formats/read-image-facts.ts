import { isGif, readGifHeader } from './gif/gif-header.ts';
import { isAvifLike, readAvifHeader } from './heif/avif-header.ts';
import type { ImageFacts } from './image-facts.ts';
import { isJpeg, readJpegHeader } from './jpeg/jpeg-header.ts';
import { isPng, readPngHeader } from './png/png-header.ts';
import { isWebp, readWebpHeader } from './webp/webp-header.ts';

/**
 * Reads the facts of an original from its whole bytes; `undefined` where they are no image that
 * is decoded here (spec §3): the caller answers 415.
 *
 * The container is walked to its end, in linear time, so that a truncated file is noticed even
 * where nothing is decoded later. Pixel data is skipped, so a fault within it is not noticed.
 *
 * @throws MediaError `UNPROCESSABLE_MEDIA` where the magic matches but the container is truncated
 * or corrupt; what decoders merely warn of is no error
 */
export function readImageFacts(bytes: Uint8Array): ImageFacts | undefined {
  if (isJpeg(bytes)) {
    return readJpegHeader(bytes);
  }
  if (isPng(bytes)) {
    return readPngHeader(bytes);
  }
  if (isWebp(bytes)) {
    return readWebpHeader(bytes);
  }
  if (isGif(bytes)) {
    return readGifHeader(bytes);
  }
  if (isAvifLike(bytes)) {
    return readAvifHeader(bytes);
  }
  return undefined;
}
