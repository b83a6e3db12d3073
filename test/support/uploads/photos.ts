import sharp from 'sharp';
import { samples } from '../test-app.ts';

/** A text in the metadata of the photographs. */
export const OWNER = 'Photographed by Ada Lovelace';

/** A photograph with its position and its owner. */
export const photo = await sharp(samples.jpeg)
  .withExif({ IFD0: { Copyright: OWNER }, IFD3: { GPSLatitude: '51/1 30/1 0/1' } })
  .jpeg()
  .toBuffer();

/** The same without metadata. */
export const plainPhoto = await sharp(samples.jpeg).jpeg().toBuffer();

/** A photograph with metadata that ends too early. */
export const truncatedPhoto = photo.subarray(0, -1_000);

/** Returns a photograph with metadata that is larger than a part of an upload to S3. */
export function drawLargePhoto(): Promise<Buffer> {
  const noise = { type: 'gaussian', mean: 128, sigma: 90 } as const;
  const create = { width: 2_000, height: 2_000, channels: 3, background: '#888', noise } as const;
  return sharp({ create })
    .withExif({ IFD0: { Copyright: OWNER } })
    .jpeg({ quality: 100, chromaSubsampling: '4:4:4' })
    .toBuffer();
}
