import sharp, { type Sharp } from 'sharp';

/** Pixels of one frame, or of several of the same size, one below the other; 8-bit sRGB. */
export interface Pixels {
  readonly data: Uint8Array;
  readonly widthPx: number;
  readonly heightPx: number;
  readonly channels: 1 | 2 | 3 | 4;
}

/** Pixels as an image that can be transformed. */
export function fromPixels({ data, widthPx, heightPx, channels }: Pixels): Sharp {
  return sharp(data, { raw: { width: widthPx, height: heightPx, channels } });
}

/** Decodes and transforms an image. */
export async function toPixels(image: Sharp): Promise<Pixels> {
  const { data, info } = await image.raw().toBuffer({ resolveWithObject: true });
  return { data, widthPx: info.width, heightPx: info.height, channels: info.channels };
}
