import { MediaError } from '../../contract/errors.ts';
import type { ImageFacts } from '../../formats/image-facts.ts';
import { readImageFacts } from '../../formats/read-image-facts.ts';
import type { RequestTrace } from '../request-trace.ts';

/**
 * Reads the facts of an original.
 *
 * @throws MediaError `UNSUPPORTED_MEDIA_TYPE`, `UNPROCESSABLE_MEDIA`
 */
export function readFacts(bytes: Uint8Array, trace: RequestTrace): Promise<ImageFacts> {
  return trace.stage('facts', async (span) => {
    const facts = readImageFacts(bytes);
    if (facts === undefined) throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
    const { format, widthPx, heightPx, frames } = facts;
    span?.setAttributes({
      'darkroom.bytes': bytes.byteLength,
      'darkroom.format': format,
      'darkroom.width': widthPx,
      'darkroom.height': heightPx,
      'darkroom.frames': frames,
    });
    return facts;
  });
}
