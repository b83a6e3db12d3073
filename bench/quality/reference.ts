import sharp from 'sharp';

const MAX_8 = 255;
const MAX_16 = 65_535;

/** IEC 61966-2-1: the light of an sRGB value, both from 0 to 1. */
function toLight(value: number): number {
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
}

/** The inverse. */
function toValue(light: number): number {
  return light <= 0.0031308 ? light * 12.92 : 1.055 * light ** (1 / 2.4) - 0.055;
}

const lightOf = Uint16Array.from({ length: MAX_8 + 1 }, (_, value) =>
  Math.round(toLight(value / MAX_8) * MAX_16),
);
const sampleOf = Uint16Array.from({ length: MAX_16 + 1 }, (_, light) =>
  Math.round(toValue(light / MAX_16) * MAX_16),
);

/**
 * A photograph, reduced exactly: all of its pixels, by their light, with Lanczos' kernel; as a PNG of 16
 * bits. The transfer functions are ours: sharp 0.35 writes black out of its linear colour space.
 */
export async function renderReference(source: Buffer, widthPx: number): Promise<Buffer> {
  const decoded = await sharp(source)
    .autoOrient()
    .toColourspace('srgb')
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const light = Uint16Array.from(decoded.data, (value) => lightOf[value] ?? 0);
  const { width, height } = decoded.info;
  const reduced = await sharp(light, { raw: { width, height, channels: 3 } })
    .resize({ width: widthPx, kernel: 'lanczos3' })
    .toColourspace('rgb16')
    .raw({ depth: 'ushort' })
    .toBuffer({ resolveWithObject: true });
  const { buffer, byteOffset, byteLength } = reduced.data;
  const values = new Uint16Array(buffer, byteOffset, byteLength / 2).map((it) => sampleOf[it] ?? 0);
  return sharp(values, {
    raw: { width: reduced.info.width, height: reduced.info.height, channels: 3 },
  })
    .toColourspace('rgb16')
    .png({ compressionLevel: 1 })
    .toBuffer();
}
