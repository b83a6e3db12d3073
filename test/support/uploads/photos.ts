import sharp from 'sharp';
import { samples } from '../test-app.ts';

/** Text in the metadata of the photographs. */
export const OWNER = 'Photographed by Ada Lovelace';

/** A photograph with its position and owner. */
export const photo = await sharp(samples.jpeg)
  .withExif({ IFD0: { Copyright: OWNER }, IFD3: { GPSLatitude: '51/1 30/1 0/1' } })
  .jpeg()
  .toBuffer();

export const plainPhoto = await sharp(samples.jpeg).jpeg().toBuffer();

/** A truncated photograph with metadata. */
export const truncatedPhoto = photo.subarray(0, -1_000);

/** Draws a photograph with metadata, larger than one part of an S3 upload. */
export function drawLargePhoto(): Promise<Buffer> {
  const noise = { type: 'gaussian', mean: 128, sigma: 90 } as const;
  const create = { width: 2_000, height: 2_000, channels: 3, background: '#888', noise } as const;
  return sharp({ create })
    .withExif({ IFD0: { Copyright: OWNER } })
    .jpeg({ quality: 100, chromaSubsampling: '4:4:4' })
    .toBuffer();
}
