import sharp from 'sharp';

const MAX_8 = 255;
const MAX_16 = 65_535;

/** IEC 61966-2-1: linear light of each sRGB value of 8 bits, and the sRGB value of each light of 16 bits. */
const lightOf = Uint16Array.from({ length: MAX_8 + 1 }, (_, sample) => {
  const value = sample / MAX_8;
  return Math.round((value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4) * MAX_16);
});
const sampleOf = Uint16Array.from({ length: MAX_16 + 1 }, (_, sample) => {
  const light = sample / MAX_16;
  const value = light <= 0.0031308 ? light * 12.92 : 1.055 * light ** (1 / 2.4) - 0.055;
  return Math.round(value * MAX_16);
});

/**
 * Reduces a photograph exactly: all of its pixels, as linear light, with Lanczos' kernel; returns a PNG of 16 bits. The
 * transfer functions are here because sharp 0.35 writes black out of its linear colour space.
 */
export async function renderReference(source: Buffer, width: number): Promise<Buffer> {
  const decoded = await sharp(source)
    .autoOrient()
    .toColourspace('srgb')
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const light = Uint16Array.from(decoded.data, (value) => lightOf[value] ?? 0);
  const reduced = await sharp(light, { raw: { ...decoded.info, channels: 3 } })
    .resize({ width, kernel: 'lanczos3' })
    .toColourspace('rgb16')
    .raw({ depth: 'ushort' })
    .toBuffer({ resolveWithObject: true });
  const { buffer, byteOffset, byteLength } = reduced.data;
  const values = new Uint16Array(buffer, byteOffset, byteLength / 2).map((it) => sampleOf[it] ?? 0);
  return sharp(values, { raw: { ...reduced.info, channels: 3 } })
    .toColourspace('rgb16')
    .png({ compressionLevel: 1 })
    .toBuffer();
}
