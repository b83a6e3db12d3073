import { join } from 'node:path';
import sharp from 'sharp';

/** Photos that everything is cut from. */
export const PHOTOS = [
  'attachments/1/1/country-lane.jpg',
  'attachments/1/2/waterfall.jpg',
  'attachments/1/12/red-panda.jpg',
].map((key) => join('fixtures/originals', key));

/** What stills are drawn as. */
export type StillFormat = 'jpeg' | 'png' | 'webp';

/** What is filmed: squares, so many. */
export interface Film {
  readonly format: 'gif' | 'webp';
  readonly edgePx: number;
  readonly frames: number;
}

/** A photo as people upload it for an avatar: a square. */
export function drawAvatar(photo: string, edgePx: number, format: StillFormat): Promise<Buffer> {
  return sharp(photo).resize(edgePx, edgePx).toFormat(format).toBuffer();
}

/** A camera that moves over a photo: every frame differs everywhere, as in a film. */
export async function drawAnimation(
  photo: string,
  { format, edgePx, frames }: Film,
): Promise<Buffer> {
  const stepPx = 6;
  const ground = await sharp(photo)
    .resize(edgePx + frames * stepPx, edgePx)
    .png()
    .toBuffer();
  const pictures = await Promise.all(
    Array.from({ length: frames }, (_, index) =>
      sharp(ground)
        .extract({ left: index * stepPx, top: 0, width: edgePx, height: edgePx })
        .png({ compressionLevel: 1 })
        .toBuffer(),
    ),
  );
  const film = sharp(pictures, { join: { animated: true } });
  return format === 'gif'
    ? film.gif({ delay: 80, loop: 0 }).toBuffer()
    : film.webp({ delay: 80, loop: 0, quality: 90 }).toBuffer();
}
