import { MediaError } from '../../contract/errors.ts';
import type { ImageFacts } from '../../formats/image-facts.ts';
import { readImageFacts } from '../../formats/read-image-facts.ts';
import type { RequestTrace } from '../request-trace.ts';

/**
 * Reads what an original says of itself.
 *
 * @throws MediaError `UNSUPPORTED_MEDIA_TYPE`
 */
export function readFacts(bytes: Uint8Array, trace: RequestTrace): ImageFacts {
  const span = trace.begin('facts');
  try {
    const facts = readImageFacts(bytes);
    if (facts === undefined) throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
    const { format, widthPx, heightPx, frames } = facts;
    span.note({ bytes: bytes.byteLength, format, widthPx, heightPx, frames });
    span.end();
    return facts;
  } catch (error) {
    span.end(error);
    throw error;
  }
}
