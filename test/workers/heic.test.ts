import { spawnSync } from 'node:child_process';
import sharp, { type Sharp } from 'sharp';
import { describe, expect, test } from 'vitest';
import { openHeif } from '../../src/formats/heif/heif-file.ts';
import { readHevcUnits } from '../../src/formats/heif/hevc-units.ts';
import { readImageFacts } from '../../src/formats/read-image-facts.ts';
import { decodeHeic } from '../../src/workers/child/heic/decode-heic.ts';
import { corpusFile } from '../formats/facts-of.ts';
import {
  clap,
  gridOf,
  HEIC,
  heicSample,
  imir,
  irot,
  withProperties,
} from '../support/images/heic-samples.ts';
import {
  box,
  createHeif,
  type HeifItem,
  imageSize,
  takeApart,
  u16be,
} from '../support/images/heif-file.ts';
import { anyJob } from '../support/processes/worker-pool.ts';

/** Decodes a file as a worker does, to what libvips is given. */
async function decode(file: Buffer): Promise<Sharp> {
  const facts = readImageFacts(file);
  if (facts?.format !== 'heic') throw new Error(`Expected a HEIC but found ${facts?.format}`);
  return sharp(await decodeHeic(file, { ...anyJob, source: 'heic', originalSize: facts }));
}

interface Raw {
  readonly size: string;
  readonly data: Buffer;
}

async function rawOf(image: Sharp): Promise<Raw> {
  const { data, info } = await image.raw().toBuffer({ resolveWithObject: true });
  return { size: `${info.width}x${info.height}x${info.channels}`, data };
}

/** How far two pictures of one size are apart, at each sample on average, and at most. */
function distance(one: Raw, other: Raw): { readonly mean: number; readonly most: number } {
  expect(one.size).toBe(other.size);
  const apart = Array.from(one.data, (sample, index) =>
    Math.abs(sample - (other.data[index] ?? 0)),
  );
  return {
    mean: apart.reduce((sum, value) => sum + value, 0) / apart.length,
    most: apart.reduce((most, value) => Math.max(most, value), 0),
  };
}

const caps = await rawOf(await decode(heicSample('caps.heic')));
const shownAs = async (change: (image: Sharp) => Sharp): Promise<Raw> => {
  const raw = { width: 192, height: 128, channels: 3 } as const;
  return rawOf(change(sharp(caps.data, { raw })));
};

describe('what is decoded is the picture', () => {
  const source = sharp(corpusFile('avif/libavif__kodim03_yuv420_8bpc.avif')).resize(192, 128);

  test.each([
    ['caps.heic', source.clone()],
    ['10-bit.heic', source.clone()],
  ])('%s', async (name, original) => {
    const decoded = await decode(heicSample(name));
    expect(
      distance(await rawOf(decoded), await rawOf(original.toColourspace('srgb'))).mean,
    ).toBeLessThan(4);
  });

  test('flat colours are exact to one level', async () => {
    const { data } = await rawOf(await decode(heicSample('patches.heic')));
    const at = (x: number, y: number) => [...data.subarray((y * 64 + x) * 3, (y * 64 + x) * 3 + 3)];
    const patches = [
      [8, 8, 255, 0, 0],
      [24, 8, 0, 255, 0],
      [40, 8, 0, 0, 255],
      [40, 24, 255, 255, 255],
      [56, 24, 0, 0, 0],
      [8, 40, 128, 128, 128],
      [56, 40, 200, 80, 40],
    ] as const;
    for (const [x = 0, y = 0, ...colour] of patches) {
      for (const [channel, value] of at(x, y).entries()) {
        expect(Math.abs(value - (colour[channel] ?? 0))).toBeLessThanOrEqual(1);
      }
    }
  });

  test('without colour', async () => {
    const grey = await rawOf((await decode(heicSample('grey.heic'))).extractChannel(1));
    const original = await rawOf(source.clone().grayscale().toColourspace('b-w'));
    expect(distance(grey, original).mean).toBeLessThan(4);
  });

  test('with alpha', async () => {
    const letters = corpusFile('png-alpha/libavif__abc.png');
    const original = sharp(letters).resize(128, 64).extractChannel(3);
    const decoded = await decode(heicSample('alpha.heic'));
    expect((await decoded.metadata()).hasAlpha).toBe(true);
    const alpha = await rawOf(decoded.extractChannel(3));
    expect(distance(alpha, await rawOf(original)).mean).toBeLessThan(2);
  });

  test('a profile is kept for the conversion; code points of wide spaces make the same', async () => {
    expect((await (await decode(heicSample('display-p3.heic'))).metadata()).icc).toBeDefined();
    const nclx = (primaries: number) =>
      box('colr', 'nclx', u16be(primaries), u16be(13), u16be(6), 0x80);
    const shown = async (...colr: readonly Uint8Array[]): Promise<readonly number[]> => {
      const item = withProperties('patches.heic', ...colr);
      const image = await decode(createHeif([item], HEIC));
      const { data } = await rawOf(image.toColourspace('srgb'));
      return [...data.subarray((40 * 64 + 56) * 3, (40 * 64 + 56) * 3 + 3)];
    };
    expect(await shown(nclx(1))).toEqual(await shown());
    // (200, 80, 40) of Display P3 and of BT.2020 in sRGB, by the matrices of CSS Color 4.
    for (const [primaries, ...expected] of [
      [12, 216, 69, 17],
      [9, 245, 37, 16],
    ] as const) {
      for (const [channel, value] of (await shown(nclx(primaries))).entries()) {
        expect(Math.abs(value - (expected[channel] ?? 0)), `${primaries}`).toBeLessThanOrEqual(2);
      }
    }
  });
});

describe('transforms are applied once, in their order', () => {
  test.each([
    ['no turn', [irot(0)], (image: Sharp) => image],
    ['a turn to the left', [irot(1)], (image: Sharp) => image.rotate(270)],
    ['upside down', [irot(2)], (image: Sharp) => image.rotate(180)],
    ['a turn to the right', [irot(3)], (image: Sharp) => image.rotate(90)],
    ['top and bottom swapped', [imir(0)], (image: Sharp) => image.flip()],
    ['left and right swapped', [imir(1)], (image: Sharp) => image.flop()],
    [
      'an aperture',
      [clap(100, 60, -20, 10)],
      (image: Sharp) => image.extract({ left: 26, top: 44, width: 100, height: 60 }),
    ],
  ] as const)('%s', async (_, properties, change) => {
    const file = createHeif([withProperties('caps.heic', ...properties)], HEIC);
    expect(distance(await rawOf(await decode(file)), await shownAs(change)).most).toBe(0);
  });

  test('a turn, then a mirror', async () => {
    const turned = await shownAs((image) => image.rotate(270));
    const mirrored = sharp(turned.data, { raw: { width: 128, height: 192, channels: 3 } }).flop();
    const file = createHeif([withProperties('caps.heic', irot(1), imir(1))], HEIC);
    expect(distance(await rawOf(await decode(file)), await rawOf(mirrored)).most).toBe(0);
  });

  test('as libheif applies them to an AVIF', async () => {
    const avif = await sharp(caps.data, { raw: { width: 192, height: 128, channels: 3 } })
      .avif({ quality: 90, effort: 0 })
      .toBuffer();
    for (const properties of [[irot(1)], [imir(0)], [imir(1)], [clap(100, 60, -20, 10), irot(3)]]) {
      const item = takeApart(avif);
      const file = createHeif([{ ...item, properties: [...item.properties, ...properties] }]);
      const heic = createHeif([withProperties('caps.heic', ...properties)], HEIC);
      const apart = distance(await rawOf(await decode(heic)), await rawOf(sharp(file)));
      expect(apart.mean).toBeLessThan(3);
    }
  });

  test('EXIF turns nothing', async () => {
    const shown = await shownAs((image) => image.rotate(90));
    expect(distance(await rawOf(await decode(heicSample('turned.heic'))), shown).most).toBe(0);
  });
});

describe('the primary image is shown', () => {
  test.each(['second-is-primary.heic', 'says-avif.heic', 'burst.heic'])('of %s', async (name) => {
    expect(distance(await rawOf(await decode(heicSample(name))), caps).most).toBe(0);
  });

  test('a grid is its tiles beside each other, cut to its size', async () => {
    const grid = await rawOf(await decode(heicSample('grid.heic')));
    const whole = await shownAs((image) =>
      image.extract({ left: 0, top: 0, width: 180, height: 120 }),
    );
    expect(distance(grid, whole).mean).toBeLessThan(3);
  });

  test('AV1 in a file that says HEIC is an AVIF', async () => {
    const avif = await sharp(caps.data, { raw: { width: 192, height: 128, channels: 3 } })
      .avif({ effort: 0 })
      .toBuffer();
    expect(readImageFacts(createHeif([takeApart(avif)], HEIC))).toMatchObject({ format: 'avif' });
  });
});

describe('nothing is half a picture', () => {
  const damaged = (from: number, length: number, value: number): Buffer => {
    const file = Buffer.from(heicSample('caps.heic'));
    const data = file.indexOf('mdat', 0, 'latin1') + 4;
    return file.fill(value, data + from, data + from + length);
  };
  const tile = takeApart(heicSample('tile-0.heic'));
  const tiles = (...items: readonly HeifItem[]): Buffer =>
    createHeif([gridOf(1, 2, [192, 64], [2, 3]), ...items], HEIC);
  const cutOff = { ...tile, data: tile.data.subarray(0, -40) };
  /** The size that is said, not the one that is coded. */
  const saying = (item: HeifItem, widthPx: number): HeifItem => ({
    ...item,
    properties: [
      imageSize(widthPx, 64),
      ...item.properties.filter((p) => !Buffer.from(p).includes('ispe')),
    ],
  });

  test.each([
    ['zeros in its data', damaged(3000, 400, 0)],
    ['ones in its data', damaged(3000, 400, 255)],
    ['junk in its data', damaged(2000, 50, 0x5a)],
    ['nothing but junk', damaged(4, 7000, 0x33)],
    ['a tile that is cut off', tiles(tile, cutOff)],
    ['a tile of junk', tiles(tile, { ...tile, data: Buffer.alloc(2000, 0x55) })],
    ['tiles of another size than they say', tiles(saying(tile, 192), saying(tile, 192))],
    ['an aperture outside', createHeif([withProperties('caps.heic', clap(100, 60, 900))], HEIC)],
    ['no parameter sets', createHeif([takeApart(heicSample('caps.heic'), 'hvcC')], HEIC)],
  ])('%s', async (_, file) => {
    await expect(async () => decode(file)).rejects.toMatchObject({ code: 'UNPROCESSABLE_MEDIA' });
  });
});

const hasFfmpeg = spawnSync('ffmpeg', ['-version']).status === 0;

/** Needs ffmpeg, whose HEVC decoder shares nothing with ours. */
test.skipIf(!hasFfmpeg)('ffmpeg decodes the same light, sample by sample', async () => {
  // Without colour, nothing depends on how that is interpolated.
  const heif = openHeif(heicSample('grey.heic')) ?? expect.fail('there is no meta box');
  const stream = readHevcUnits(heif, heif.primary).map((unit) =>
    Buffer.concat([Buffer.from([0, 0, 0, 1]), unit]),
  );
  const command = '-v error -f hevc -i - -f rawvideo -pix_fmt gray -'.split(' ');
  const { stdout } = spawnSync('ffmpeg', command, { input: Buffer.concat(stream) });
  const { data } = await rawOf(await decode(heicSample('grey.heic')));
  const ours = data.filter((_, index) => index % 3 === 0);
  expect(Buffer.compare(Buffer.from(ours), stdout)).toBe(0);
});
