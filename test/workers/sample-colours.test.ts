import { readFileSync } from 'node:fs';
import { deflateSync } from 'node:zlib';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import {
  afterIhdr,
  join,
  pngChunk,
  put,
  riffChunk,
  u16be,
  u32be,
  webpFile,
} from '../formats/containers.ts';
import { readFixtureTable } from '../support/fixture-table.ts';
import { drawApng } from '../support/images/draw-apng.ts';
import {
  box,
  clap,
  createHeif,
  extractImage,
  gridOf,
  HEIC,
  type HeifItem,
  heicSample,
  imageSize,
  irot,
  withProperties,
} from '../support/images/heif-file.ts';
import { shareTestApp } from '../support/test-app.ts';

const app = shareTestApp();

const sample = (name: string) => readFileSync(`fixtures/sample-colours/${name}`);

/** Renders a file at its own size, without loss. */
async function render(file: Uint8Array, query = 'format=png') {
  const { statusCode, rawPayload } = await app.serve(file, `/attachments/1/{id}/a?${query}`);
  expect(statusCode).toBe(200);
  return sharp(rawPayload).raw().toBuffer({ resolveWithObject: true });
}

/** Returns the colours in the middle of 4×4 fields, row by row. */
async function renderFields(file: Uint8Array, query?: string): Promise<number[][]> {
  const { data, info } = await render(file, query);
  const { width, height, channels } = info;
  return Array.from({ length: 16 }, (_, field) => {
    const x = Math.floor((((field % 4) + 0.5) * width) / 4);
    const y = Math.floor(((Math.floor(field / 4) + 0.5) * height) / 4);
    const at = (y * width + x) * channels;
    return [...data.subarray(at, at + channels)];
  });
}

/** Maximum difference of a channel; fields without an expected colour count as equal. */
function distance(shown: readonly number[][], expected: readonly (number[] | undefined)[]): number {
  const differences = expected.flatMap((colour, field) =>
    (colour ?? []).map((value, channel) => Math.abs(value - (shown[field]?.[channel] ?? -255))),
  );
  return Math.max(...differences);
}

const rows = readFixtureTable('sample-colours/index.tsv').map(({ file = '', colours = '' }) => ({
  file,
  colours: colours
    .split(' ')
    .map((colour) => (colour === '-' ? undefined : colour.split(',').map(Number))),
}));
const colouredRows = rows.filter(({ colours }) => colours.length === 16);

function coloursOf(file: string) {
  const row = rows.find((each) => each.file === file);
  if (row === undefined) throw new Error(`Expected a row of ${file}`);
  return row.colours;
}

test.each(colouredRows)('$file has the colours that were encoded', async ({ file, colours }) => {
  const shown = await renderFields(sample(file));
  expect(distance(shown, colours)).toBeLessThanOrEqual(6);
  expect(new Set(shown.map(({ length }) => length))).toEqual(
    new Set([Math.max(...colours.map((colour) => colour?.length ?? 0))]),
  );
});

test('converts an asset of Display P3 even at its own size and quality', async () => {
  const { statusCode, rawPayload } = await app.serve(
    sample('display-p3.avif'),
    '/avatars/{id}/ab12.webp?size=4096&quality=lossless',
  );
  expect(statusCode).toBe(200);
  const pixel = await sharp(rawPayload).extract({ left: 16, top: 80, width: 1, height: 1 });
  expect(distance([[...(await pixel.raw().toBuffer())]], [[216, 69, 17]])).toBeLessThanOrEqual(6);
});

test('an AVIF without a colr box has the code points of its AV1 image', async () => {
  const file = sample('display-p3.avif');
  const withoutColr = put(file, file.indexOf('colrnclx', 0, 'latin1'), 'free');
  expect(await renderFields(withoutColr)).toEqual(await renderFields(file));
});

describe('a profile', () => {
  const colr = (icc: Buffer | undefined) => box('colr', 'prof', icc ?? '');

  test('is applied after the samples of an AVIF are converted, and has precedence over code points', async () => {
    const black = sharp({ create: { width: 1, height: 1, channels: 3, background: '#000' } });
    const wide = await sharp(await black.withIccProfile('p3').png().toBuffer()).metadata();
    const { properties, ...item } = extractImage(sample('grey-limited.avif'));
    const file = createHeif([{ ...item, properties: [...properties, colr(wide.icc)] }]);
    expect(distance(await renderFields(file), coloursOf('grey-limited.avif'))).toBeLessThanOrEqual(
      6,
    );
    const linear = extractImage(sample('linear.avif'));
    const profiled = { ...linear, properties: [...linear.properties, colr(wide.icc)] };
    const shown = await renderFields(createHeif([profiled]));
    expect(distance(shown, coloursOf('display-p3.avif'))).toBeLessThanOrEqual(6);
  });

  test('for grey is applied to grey samples of limited range', async () => {
    const { icc } = await sharp(readFileSync('fixtures/avifenc/grey-profile.avif')).metadata();
    const { properties, ...item } = extractImage(sample('grey-limited.avif'));
    const shown = await renderFields(
      createHeif([{ ...item, properties: [...properties, colr(icc)] }]),
    );
    // The gamma of the profile is 1.8.
    const toSrgb = (light: number) => 255 * (1.055 * light ** (1 / 2.4) - 0.055);
    const expected = coloursOf('grey-limited.avif').map((colour) =>
      colour?.map((value) => (value < 16 ? 0 : toSrgb((value / 255) ** 1.8))),
    );
    expect(distance(shown, expected.slice(0, 13))).toBeLessThanOrEqual(3);
  });
});

describe('the cICP of a PNG', () => {
  const fields = ['display-p3.avif', 'bt-2020-pq-10-bit.avif', 'linear.avif'] as const;
  const coded = coloursOfFields();
  const cicp = (...bytes: readonly number[]) => pngChunk('cICP', join(...bytes));
  const gamma = pngChunk('gAMA', u32be(100_000));
  const original = sharp(Buffer.from(coded.flat()), { raw: { width: 4, height: 4, channels: 3 } });
  const kinds = {
    truecolour: () => original.clone().png().toBuffer(),
    'a palette': () => original.clone().png({ palette: true, dither: 0 }).toBuffer(),
    '16 bits': () => original.clone().toColourspace('rgb16').png().toBuffer(),
    alpha: () => original.clone().ensureAlpha().png().toBuffer(),
  };

  test.each(Object.entries(kinds))('is applied to %s like nclx code points', async (_, draw) => {
    const png = await draw();
    for (const [index, points] of [
      cicp(12, 13, 0, 1),
      cicp(9, 16, 0, 1),
      cicp(1, 8, 0, 1),
    ].entries()) {
      const shown = await renderFields(afterIhdr(png, points, gamma));
      expect(distance(shown, coloursOf(fields[index] ?? ''))).toBeLessThanOrEqual(2);
    }
  });

  test('is applied to grey', async () => {
    const grey = sharp(Buffer.alloc(16, 128), { raw: { width: 4, height: 4, channels: 1 } });
    const png = await grey.toColourspace('b-w').png().toBuffer();
    const [shown] = await renderFields(afterIhdr(png, cicp(1, 8, 0, 1)));
    expect(shown).toEqual([188, 188, 188]);
  });

  test('has precedence over a profile', async () => {
    const profiled = await original.clone().withIccProfile('p3').png().toBuffer();
    const plain = await original.clone().png().toBuffer();
    const wide = await renderFields(await profiled);
    const stored = await sharp(profiled, { ignoreIcc: true }).raw().toBuffer();
    const shown = await renderFields(afterIhdr(profiled, cicp(1, 13, 0, 1)));
    expect(shown.flat()).toEqual([...stored]);
    expect(shown).not.toEqual(wide);
    expect(await renderFields(afterIhdr(plain, cicp(1, 13, 0, 1)))).toEqual(coded);
  });

  test.each([
    ['has another matrix', cicp(12, 13, 1, 1)],
    ['has the limited range', cicp(12, 13, 0, 0)],
    ['is too short', cicp(12, 13, 0)],
    ['has a wrong CRC', put(cicp(12, 13, 0, 1), 12, 0, 0, 0, 0)],
  ])('is ignored if it %s, and gAMA is not', async (_, ignored) => {
    const png = await original.clone().png().toBuffer();
    expect(await renderFields(afterIhdr(png, ignored))).toEqual(coded);
    const shown = await renderFields(afterIhdr(png, ignored, gamma));
    expect(distance(shown, coloursOf('linear.avif'))).toBeLessThanOrEqual(2);
  });

  test('is applied to each frame of an APNG', async () => {
    const frame = { draw: () => [200, 80, 40, 255] };
    const apng = drawApng({
      widthPx: 4,
      heightPx: 4,
      frames: [frame, { draw: () => [40, 80, 200, 255] }],
      before: [{ type: 'cICP', data: Buffer.of(12, 13, 0, 1) }],
    });
    const { rawPayload } = await app.serve(
      apng,
      '/attachments/1/{id}/a?format=webp&animated=true&quality=lossless',
    );
    const strip = await sharp(rawPayload, { animated: true }).removeAlpha().raw().toBuffer();
    const [first, second] = [strip.subarray(0, 3), strip.subarray(48, 51)].map((each) => [...each]);
    expect(
      distance(
        [first ?? [], second ?? []],
        [
          [216, 69, 17],
          [22, 81, 208],
        ],
      ),
    ).toBeLessThanOrEqual(1);
  });
});

/** The samples of the files in the table, before any conversion. */
function coloursOfFields(): number[][] {
  const full = [255, 255, 255, 0, 0, 0, 128, 128, 128, 64, 64, 64, 255, 0, 0, 0, 255, 0, 0, 0, 255];
  const mixed = [255, 255, 0, 200, 80, 40, 40, 80, 200, 80, 160, 60, 192, 192, 192, 230, 190, 170];
  const samples = [...full, ...mixed, 30, 60, 30, 120, 40, 140, 16, 235, 128];
  return Array.from({ length: 16 }, (_, field) => samples.slice(field * 3, field * 3 + 3));
}

describe('a profile of XYZ or Lab space is ignored in an RGB', () => {
  const profiles = ['xyz-profile.jpg', 'lab-profile.jpg'].map(async (name) => {
    const { icc } = await sharp(sample(name)).metadata();
    if (icc === undefined) throw new Error(`Expected a profile in ${name}`);
    return icc;
  });
  const colours = Buffer.from(coloursOfFields().flat());
  const image = () => sharp(colours, { raw: { width: 4, height: 4, channels: 3 } });

  test.each(['xyz-profile.jpg', 'lab-profile.jpg'])('JPEG: %s', async (name) => {
    const { data } = await render(sample(name));
    const stored = await sharp(sample(name), { ignoreIcc: true }).raw().toBuffer();
    expect(data.equals(stored)).toBe(true);
  });

  test.each(['8', '16'])('PNG of %s bits', async (bits) => {
    const png = await image()
      .toColourspace(bits === '8' ? 'srgb' : 'rgb16')
      .png()
      .toBuffer();
    for (const profile of await Promise.all(profiles)) {
      const iccp = pngChunk('iCCP', join('x\0\0', deflateSync(profile)));
      const shown = await render(afterIhdr(png, iccp));
      expect([...shown.data]).toEqual([...colours]);
    }
  });

  test.each([false, true])('WebP, animated: %s', async (isAnimated) => {
    const frames = sharp(Buffer.concat([colours, Buffer.alloc(48, 90)]), {
      raw: { width: 4, height: 8, channels: 3, ...(isAnimated ? { pageHeight: 4 } : {}) },
    });
    const webp = await frames
      .withExif({ IFD0: { Copyright: 'x' } })
      .webp({ lossless: true })
      .toBuffer();
    const flagged = put(webp.subarray(12, 30), 8, webp.readUInt8(20) | 0x20);
    for (const profile of await Promise.all(profiles)) {
      const file = webpFile(flagged, riffChunk('ICCP', profile), webp.subarray(30));
      const { rawPayload } = await app.serve(
        file,
        '/attachments/1/{id}/a?format=webp&quality=lossless&animated=true',
      );
      const shown = await sharp(rawPayload, { animated: true }).removeAlpha().raw().toBuffer();
      expect([...shown.subarray(0, 48)]).toEqual([...colours]);
    }
  });
});

describe('an image that repeats another by iden', () => {
  const caps = withProperties('caps.heic', irot(1));
  const iden = (source: number, ...properties: readonly Uint8Array[]): HeifItem => ({
    type: 'iden',
    data: Buffer.alloc(0),
    properties,
    references: [['dimg', [source]]],
  });
  const size = imageSize(128, 192);

  test('has the transforms of both, in sequence', async () => {
    const both = await render(createHeif([iden(2, size, irot(1)), caps], HEIC));
    const turned = await render(createHeif([withProperties('caps.heic', irot(2))], HEIC));
    expect(both.info).toMatchObject({ width: 192, height: 128 });
    expect(both.data.equals(turned.data)).toBe(true);
  });

  test('may repeat one that repeats another, or a grid', async () => {
    const chain = await render(createHeif([iden(2, size), iden(3, size, irot(3)), caps], HEIC));
    const unrotated = await render(heicSample('caps.heic'));
    expect(chain.data.equals(unrotated.data)).toBe(true);
    const tiles = [0, 1, 2, 3].map((at) => extractImage(heicSample(`tile-${at}.heic`)));
    const grid = gridOf(2, 2, [192, 128], [3, 4, 5, 6]);
    const ofGrid = await render(
      createHeif([iden(2, imageSize(192, 128), clap(100, 60)), grid, ...tiles], HEIC),
    );
    expect(ofGrid.info).toMatchObject({ width: 100, height: 60 });
  });

  test('is decoded in an AVIF too', async () => {
    const p3 = extractImage(sample('display-p3.avif'));
    const [, ...shown] = await renderFields(
      createHeif([iden(2, imageSize(128, 128), irot(2)), p3]),
    );
    const [, ...reversed] = (await renderFields(sample('display-p3.avif'))).toReversed();
    expect(shown).toEqual(reversed);
  });

  test.each([
    ['itself', [iden(1, size)]],
    ['no image', [{ ...iden(2, size), references: [] }, caps]],
    ['two images', [{ ...iden(2, size), references: [['dimg', [2, 2]]] }, caps] as const],
  ])('returns 422 if it repeats %s', async (_, items) => {
    const { statusCode } = await app.serve(
      createHeif(items as readonly HeifItem[], HEIC),
      '/attachments/1/{id}/a?format=png',
    );
    expect(statusCode).toBe(422);
  });
});

test('returns 415 for a HEIC overlay', async () => {
  const overlay: HeifItem = {
    type: 'iovl',
    data: join(
      0,
      0,
      u16be(0xffff),
      Buffer.alloc(4),
      u16be(0xffff),
      u16be(192),
      u16be(128),
      u32be(0),
    ),
    properties: [imageSize(192, 128)],
    references: [['dimg', [2]]],
  };
  const file = createHeif([overlay, extractImage(heicSample('caps.heic'))], HEIC);
  const { statusCode, body } = await app.serve(file, '/attachments/1/{id}/a?format=png');
  expect([statusCode, JSON.parse(body).code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
});

describe('a HEIF file with its brand only among the compatible ones', () => {
  const files = {
    'an AVIF of the brand MA1B': [put(sample('display-p3.avif'), 8, 'MA1B'), 'image/avif'],
    'a HEIC of the brand mif2': [put(heicSample('caps.heic'), 8, 'mif2'), 'image/heic'],
    'a HEIC of the brand isom': [put(heicSample('caps.heic'), 8, 'isom'), 'image/heic'],
  } as const;

  test.each(Object.entries(files))('%s is an image everywhere', async (_, [file, type]) => {
    const passed = await app.serve(file, '/attachments/1/{id}/a');
    expect(passed.headers['content-type']).toBe(type);
    expect(passed.rawPayload.equals(file)).toBe(true);
    for (const target of ['/attachments/1/{id}/a?width=64', '/avatars/{id}/ab12.webp?size=64']) {
      const { statusCode, headers } = await app.serve(file, target);
      expect([statusCode, headers['content-type']]).toEqual([200, 'image/webp']);
    }
  });
});
