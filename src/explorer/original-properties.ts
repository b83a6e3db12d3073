import { formatNameOf, type MediaMetadata } from '../contract/metadata.ts';
import { readImageHeader } from '../formats/containers.ts';
import type { OriginalProperties } from './explorer-data.ts';

/** Returns the metadata that the page shows; `null` for a file without dimensions. */
export function propertiesOf(metadata: MediaMetadata): OriginalProperties | null {
  const { content_type: contentType, width, height, animated, duration, codec } = metadata;
  if (width === null || height === null) return null;
  return {
    format: formatNameOf(contentType),
    widthPx: width,
    heightPx: height,
    frames: metadata.frames ?? 1,
    // The duration of a corrupt animation is unknown.
    isMoving: animated === true && duration !== null,
    sizeBytes: metadata.size,
    ...(metadata.kind === 'video' && {
      durationS: duration ?? undefined,
      codec: codec ?? undefined,
    }),
  };
}

/** Returns the same for a file bundled with the service. */
export function propertiesOfShipped(bytes: Uint8Array): OriginalProperties | undefined {
  const image = readImageHeader(bytes);
  if (image === undefined) return undefined;
  const { format, widthPx, heightPx, frames } = image;
  return { format, widthPx, heightPx, frames, isMoving: false, sizeBytes: bytes.length };
}
