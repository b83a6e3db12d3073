import { readFileSync } from 'node:fs';
import sharp, { type Sharp } from 'sharp';
import { describe, expect, test } from 'vitest';
import { openHeif } from '../../src/formats/heif/heif-file.ts';
import { corpusFile } from '../formats/facts-of.ts';
import { shareTestApp } from '../support/test-app.ts';

const app = shareTestApp();

/** Reads a file that avifenc wrote: its tiles are hidden items, of which only what is made of them is shown. */
function sample(name: string): Buffer {
  return readFileSync(new URL(`../../fixtures/avifenc/${name}`, import.meta.url));
}

/** Shows a file at its own size. What avifenc writes, turned or with alpha, is told by the goldens avif/*. */
async function shown(file: Buffer): Promise<Sharp> {
  const { rawPayload, statusCode } = await app.serve(file, '/avatars/{id}/x.png?size=4096');
  expect(statusCode).toBe(200);
  return sharp(rawPayload);
}

const pixels = (image: Sharp) => image.raw().toBuffer();

async function statusOf(file: Buffer): Promise<number> {
  return (await app.serve(file, '/avatars/{id}/x.webp?size=64')).statusCode;
}

test('tiles at the edges of a grid are cut to its size', async () => {
  const cut = sample('3x3.avif');
  cut.writeUInt32BE(170, cut.indexOf('ispe', 0, 'latin1') + 8);
  cut.writeUInt32BE(150, cut.indexOf('ispe', 0, 'latin1') + 12);
  const grid = cut.indexOf('mdat', 0, 'latin1') + 4;
  cut.writeUInt16BE(170, grid + 4);
  cut.writeUInt16BE(150, grid + 6);
  const whole = await shown(sample('3x3.avif'));
  const part = whole.extract({ left: 0, top: 0, width: 170, height: 150 });
  expect((await pixels(await shown(cut))).equals(await pixels(part))).toBe(true);
});

test('a grid may come after its tiles in the lists of items', async () => {
  const reversed = sample('3x3.avif');
  // Behind the number of entries of each list, all of which are equally long.
  for (const [type, offset, entryBytes] of [
    ['iloc', 12, 14],
    ['iinf', 10, 26],
  ] as const) {
    const at = reversed.indexOf(type, 0, 'latin1');
    const list = reversed.subarray(at + offset, at - 4 + reversed.readUInt32BE(at - 4));
    const entries = Array.from({ length: 10 }, (_, index) =>
      list.subarray(index * entryBytes, (index + 1) * entryBytes),
    );
    list.set(Buffer.concat(entries.reverse()));
  }
  const usual = await pixels(await shown(sample('3x3.avif')));
  expect((await pixels(await shown(reversed))).equals(usual)).toBe(true);
});

test('an alpha plane for each tile', async () => {
  const { channels } = await (
    await shown(corpusFile('avif/libavif__color_grid_alpha_nogrid.avif'))
  ).stats();
  expect(channels[3]).toMatchObject({ min: 0, max: 255 });
});

describe('a part that cannot be decoded is a 422', () => {
  const files = {
    'a grid': sample('3x3.avif'),
    'a grid and a grid of alpha': sample('2x2-alpha-10-bit.avif'),
    'alpha for each tile': corpusFile('avif/libavif__color_grid_alpha_nogrid.avif'),
    'tiles that are not hidden': corpusFile('avif/libavif__sofa_grid1x5_420.avif'),
    'no grid': sample('alpha-turned.avif'),
  };

  test.each(Object.entries(files))('%s', async (_, file) => {
    expect(await statusOf(file)).toBe(200);
    const heif = openHeif(file);
    const parts = [...(heif?.types ?? [])].flatMap(([item, type]) =>
      type === 'av01' ? [item] : [],
    );
    expect(parts.length).toBeGreaterThan(1);
    for (const part of parts) {
      const [{ start, end } = { start: 0, end: 0 }] = heif?.locations.get(part) ?? [];
      const broken = Buffer.from(file).fill(0x55, start + 2, Math.min(end, start + 4096));
      expect(await statusOf(broken), `item ${part}`).toBe(422);
    }
  });
});
