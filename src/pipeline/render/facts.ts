import { LRUCache } from 'lru-cache';
import { MediaError } from '../../contract/errors.ts';
import type { ImageFacts } from '../../formats/image-facts.ts';
import { readImageFacts } from '../../formats/read-image-facts.ts';
import type { OriginalIdentity } from '../originals/metadata-cache.ts';
import { endSpan, type RequestTrace } from '../request-trace.ts';

/**
 * Reads what an original says of itself.
 *
 * @throws MediaError `UNSUPPORTED_MEDIA_TYPE`, `UNPROCESSABLE_MEDIA`
 */
export function readFacts(bytes: Uint8Array, trace: RequestTrace): ImageFacts {
  const span = trace.begin('facts');
  try {
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
    endSpan(span);
    return facts;
  } catch (error) {
    endSpan(span, error);
    throw error;
  }
}

/** What the facts that are remembered may take, in bytes. */
const MAX_KNOWN_BYTES = 32 * 1024 * 1024;

/** Facts with their keys, and the delay of a frame, in bytes (measured: 480 and 8). */
const FACTS_BYTES = 512;
const DELAY_BYTES = 8;

/** Facts of originals that were read lately: what another rendering costs is known without reading them. */
export class KnownFacts {
  readonly #entries = new LRUCache<string, { readonly etag: string; readonly facts: ImageFacts }>({
    maxSize: MAX_KNOWN_BYTES,
    sizeCalculation: ({ facts }) =>
      FACTS_BYTES + DELAY_BYTES * (facts.animation?.delaysMs.length ?? 0),
  });

  /** @param etag of the state that is meant */
  find(originKey: string, etag: string): ImageFacts | undefined {
    const known = this.#entries.get(originKey);
    return known?.etag === etag ? known.facts : undefined;
  }

  note(originKey: string, { etag }: OriginalIdentity, facts: ImageFacts): void {
    this.#entries.set(originKey, { etag, facts });
  }
}
