import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { useTemporaryDirectory } from './service.ts';

const TOOLS = ['butteraugli_main', 'ssimulacra_main'].map((name) => `/usr/bin/${name}`);

/** @throws Error if the tools are not installed */
export function requireLikenessTools(): void {
  if (TOOLS.every((tool) => existsSync(tool))) return;
  throw new Error(`needs ${TOOLS.join(' and ')} (Debian: libjxl-devtools)`);
}

/** Measures the distance of a picture from a PNG of `renderReference` with the same size. */
export async function measureDistance(reference: Buffer, picture: Uint8Array) {
  const decoded = await sharp(picture).png({ compressionLevel: 1 }).toBuffer();
  const [butteraugliText = '', ssimulacraText = ''] = await useTemporaryDirectory(
    async (directory) => {
      const files = [join(directory, 'reference.png'), join(directory, 'picture.png')] as const;
      writeFileSync(files[0], reference);
      writeFileSync(files[1], decoded);
      return TOOLS.map((tool) => execFileSync(tool, files, { encoding: 'utf8', stdio: 'pipe' }));
    },
  );
  const butteraugli = Number(/3-norm: ([\d.]+)/.exec(butteraugliText)?.[1]);
  const ssimulacra = Number(ssimulacraText.trim().split(/\s+/)[0]);
  if (!(butteraugli >= 0) || !(ssimulacra >= 0)) throw new Error('The tools printed no distance.');
  return {
    /** 3-norm: 0 means equal, 1 just noticeable. */
    butteraugli,
    /** 0 means equal. */
    ssimulacra,
  };
}

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
 * Resizes a photograph exactly: from all pixels, in linear light, with Lanczos' kernel. Returns a PNG of 16 bits. This
 * module has its own transfer functions because sharp 0.35 writes black when it converts from linear light. Omit
 * `height` to keep the proportions.
 */
export async function renderReference(
  source: Buffer,
  width: number,
  height?: number,
): Promise<Buffer> {
  const decoded = await sharp(source)
    .autoOrient()
    .toColourspace('srgb')
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const light = Uint16Array.from(decoded.data, (value) => lightOf[value] ?? 0);
  const reduced = await sharp(light, { raw: { ...decoded.info, channels: 3 } })
    .resize({ width, ...(height !== undefined && { height, fit: 'fill' }), kernel: 'lanczos3' })
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
