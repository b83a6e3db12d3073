import { MediaError } from '../contract/errors.ts';
import { containerOf } from './containers.ts';
import type { ImageHeader } from './image-header.ts';
import type { ByteSource } from './video/av-metadata.ts';

export interface RangedHeader {
  /** Has size, format and orientation; the number of frames only for a still. */
  readonly header: ImageHeader;
  readonly isStill: boolean;
}

/** Prefix lengths to try; the second has room for a large profile, preview or XMP block. */
const PREFIX_BYTES = [64 * 1024, 256 * 1024];

/** Reads the header of an image from at most three ranges of 256 KiB; `undefined` if it is damaged or longer. */
export async function readRangedHeader(source: ByteSource): Promise<RangedHeader | undefined> {
  const { sizeBytes } = source;
  for (const prefixBytes of PREFIX_BYTES) {
    const prefix = await source.read(0, Math.min(prefixBytes, sizeBytes));
    const isLongest = prefixBytes >= sizeBytes || prefixBytes === PREFIX_BYTES.at(-1);
    const container = containerOf(prefix);
    try {
      const read = container?.readHeader(prefix, { isLongest });
      if (read === undefined) return undefined;
      const { format, widthPx, heightPx, frames } = read;
      const isStill = format !== 'gif' && format !== 'apng' && frames === 1;
      const orientation = (await container?.readLateOrientation?.(source)) ?? read.orientation;
      const stillFields = { frames: 1, animation: undefined, isClean: false } as const;
      return { header: { format, widthPx, heightPx, orientation, ...stillFields }, isStill };
    } catch (error) {
      if (!(error instanceof MediaError) || error.code !== 'UNPROCESSABLE_MEDIA') throw error;
    }
    if (isLongest) break;
  }
  return undefined;
}
