import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { openHeif } from '../../src/formats/heif/heif-file.ts';
import { corpusFile } from '../formats/facts-of.ts';
import { shareTestApp } from '../support/test-app.ts';

const app = shareTestApp();

/** Reads a file that avifenc wrote: its tiles are hidden items, of which only what is made of them is shown. */
function sample(name: string): Buffer {
  return readFileSync(new URL(`../../fixtures/avifenc/${name}`, import.meta.url));
}

async function statusOf(file: Buffer): Promise<number> {
  return (await app.serve(file, '/avatars/{id}/x.webp?size=64')).statusCode;
}

const files = {
  'a grid': sample('3x3.avif'),
  'a grid and a grid of alpha': sample('2x2-alpha-10-bit.avif'),
  'alpha for each tile': corpusFile('avif/libavif__color_grid_alpha_nogrid.avif'),
  'tiles that are not hidden': corpusFile('avif/libavif__sofa_grid1x5_420.avif'),
  'no grid': sample('alpha-turned.avif'),
};

test.each(Object.entries(files))(
  'a part of %s that cannot be decoded is a 422',
  async (_, file) => {
    expect(await statusOf(file)).toBe(200);
    const heif = openHeif(file);
    const parts = [...(heif?.types ?? [])].filter(([, type]) => type === 'av01');
    expect(parts.length).toBeGreaterThan(1);
    for (const [part] of parts) {
      const [{ start, end } = { start: 0, end: 0 }] = heif?.locations.get(part) ?? [];
      const broken = Buffer.from(file).fill(0x55, start + 2, Math.min(end, start + 4096));
      expect(await statusOf(broken), `item ${part}`).toBe(422);
    }
  },
);
