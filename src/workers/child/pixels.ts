import sharp, { type Sharp } from 'sharp';

/** Pixels of one frame, or of several of the same size, one below the other; sRGB of 8 or 16 bits. */
export interface Pixels<Samples extends Uint8Array | Uint16Array = Uint8Array> {
  readonly data: Samples;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly channels: 1 | 2 | 3 | 4;
}

/** Returns pixels as an image for sharp. */
export function fromPixels({
  data,
  widthPx,
  heightPx,
  channels,
}: Pixels<Uint8Array | Uint16Array>): Sharp {
  return sharp(data, {
    raw: { width: widthPx, height: heightPx, channels },
    limitInputPixels: false, // our own pixels: never more than were decoded
  });
}

/** Returns the pixels of sharp's image. */
export async function toPixels(image: Sharp): Promise<Pixels> {
  const { data, info } = await image.raw().toBuffer({ resolveWithObject: true });
  return { data, widthPx: info.width, heightPx: info.height, channels: info.channels };
}
