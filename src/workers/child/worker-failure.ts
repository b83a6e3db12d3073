import { MediaError } from '../../contract/errors.ts';
import { FAILURE_CODES, type FailureCode } from '../protocol.ts';

/**
 * Messages of a failed allocation: "out of memory" (libvips, libpng, V8 of WebAssembly), "Insufficient memory"
 * (libjpeg, zlib), "Memory allocation error" (libheif), "Could not allocate enough memory" (sharp), "Array buffer
 * allocation failed" (V8), "std::bad_alloc" (C++). The word "memory" alone is not enough: "memory access out of bounds"
 * is a trap, and errors of our own may contain it.
 */
const OUT_OF_MEMORY =
  /(out of|insufficient) memory|memory allocation error|could not allocate (enough )?memory|array buffer allocation failed|\bbad_alloc\b/i;

/**
 * Other messages of a failed allocation: libwebp only reports failure, and a thread finds no room for its stack. Both
 * were observed by running every format and encoder within small bounds; neither is a bug of ours.
 */
const UNABLE = /\bwebp(save|2vips)\w*: |Error creating thread/;

/**
 * Returns the code and the cause that a worker reports for an error. A failed allocation is the original's fault,
 * wherever it was noticed: libvips, a decoder, sharp and V8 are all bounded here.
 */
export function failureOf(error: unknown): { readonly code: FailureCode; readonly cause: unknown } {
  const cause = error instanceof MediaError ? (error.cause ?? error) : error;
  const code = error instanceof MediaError && FAILURE_CODES.find((known) => known === error.code);
  if (OUT_OF_MEMORY.test(String(cause))) return { code: 'MEDIA_TOO_LARGE', cause };
  if (code) return { code, cause };
  return { code: UNABLE.test(String(cause)) ? 'UNPROCESSABLE_MEDIA' : 'INTERNAL_ERROR', cause };
}
