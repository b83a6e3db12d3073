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

/** Pixels of a file as the service shows them, at their own size. */
async function shown(file: Buffer): Promise<Sharp> {
  const { rawPayload, statusCode } = await app.serve(file, '/avatars/{id}/x.png?size=4096');
  expect(statusCode).toBe(200);
  return sharp(rawPayload);
}

async function statusOf(file: Buffer): Promise<number> {
  return (await app.serve(file, '/avatars/{id}/x.webp?size=64')).statusCode;
}

/** The mean difference of two pictures in each channel, in levels. */
async function distances(one: Sharp, other: Sharp): Promise<number[]> {
  const [a, b] = await Promise.all(
    [one, other].map((image) => image.ensureAlpha().raw().toBuffer({ resolveWithObject: true })),
  );
  expect(a?.info).toEqual(b?.info);
  const sums = [0, 0, 0, 0];
  for (const [at, level] of a?.data.entries() ?? []) {
    sums[at % 4] = (sums[at % 4] ?? 0) + Math.abs(level - (b?.data[at] ?? 0));
  }
  return sums.map((sum) => (4 * sum) / (a?.data.length ?? 0));
}

const side = { width: 192, height: 192 };
const caps = await sharp(corpusFile('avif/libavif__kodim03_yuv420_8bpc.avif'))
  .resize(192, 192)
  .toColourspace('srgb')
  .raw()
  .toBuffer();
const picture = () => sharp(caps, { raw: { ...side, channels: 3 } });
const ramp = Buffer.from(Array.from({ length: 192 * 192 }, (_, at) => 64 + (at % 192)));
const fading = () => picture().joinChannel(ramp, { raw: { ...side, channels: 1 } });
/** A copy, to which further steps are applied after all that were. */
const settled = async (image: Sharp) => sharp(await image.png().toBuffer());

describe('what avifenc writes is the picture that it was given', () => {
  test.each([
    ['2x1.avif', async () => picture()],
    ['2x2-turned.avif', async () => (await settled(picture().rotate(270))).flip()],
    ['2x2-alpha-10-bit.avif', async () => (await settled(fading())).rotate(90)],
    ['3x3.avif', async () => picture()],
    [
      'alpha-turned.avif',
      async () =>
        (
          await settled(
            (await settled(fading())).extract({ left: 0, top: 0, width: 192, height: 96 }),
          )
        ).rotate(270),
    ],
  ] as const)('%s', async (name, expected) => {
    const [red = 9, green = 9, blue = 9, alpha = 9] = await distances(
      await shown(sample(name)),
      await expected(),
    );
    expect(Math.max(red, green, blue)).toBeLessThan(5);
    expect(alpha).toBeLessThan(1);
  });
});

test('tiles at the edges of a grid are cut to its size', async () => {
  const cut = sample('3x3.avif');
  cut.writeUInt32BE(170, cut.indexOf('ispe', 0, 'latin1') + 8);
  cut.writeUInt32BE(150, cut.indexOf('ispe', 0, 'latin1') + 12);
  const grid = cut.indexOf('mdat', 0, 'latin1') + 4;
  cut.writeUInt16BE(170, grid + 4);
  cut.writeUInt16BE(150, grid + 6);
  const whole = await shown(sample('3x3.avif'));
  const part = whole.extract({ left: 0, top: 0, width: 170, height: 150 });
  expect(await distances(await shown(cut), part)).toEqual([0, 0, 0, 0]);
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
  const usual = await shown(sample('3x3.avif'));
  expect(await distances(await shown(reversed), usual)).toEqual([0, 0, 0, 0]);
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
