import { formatNameOf, type MediaMetadata } from '../contract/metadata.ts';
import { readImageHeader } from '../formats/containers.ts';
import type { OriginalProperties } from './explorer-data.ts';

/** Returns the part of an original's metadata that the page shows; `null` for a file without a picture. */
export function propertiesOf(metadata: MediaMetadata): OriginalProperties | null {
  const { content_type: contentType, width, height, animated, duration, codec } = metadata;
  if (width === null || height === null) return null;
  return {
    format: formatNameOf(contentType),
    widthPx: width,
    heightPx: height,
    frames: metadata.frames ?? 1,
    // A damaged animation has no duration.
    isMoving: animated === true && duration !== null,
    sizeBytes: metadata.size,
    ...(metadata.kind === 'video' && {
      durationS: duration ?? undefined,
      codec: codec ?? undefined,
    }),
  };
}

/** Returns the same for a shipped file. */
export function propertiesOfShipped(bytes: Uint8Array): OriginalProperties | undefined {
  const image = readImageHeader(bytes);
  if (image === undefined) return undefined;
  const { format, widthPx, heightPx, frames } = image;
  return { format, widthPx, heightPx, frames, isMoving: false, sizeBytes: bytes.length };
}
