import sharp, { type Sharp } from 'sharp';
import { describe, expect, test } from 'vitest';
import { u16be } from '../formats/containers.ts';
import {
  alphaProperty,
  box,
  clap,
  createHeif,
  extractImage,
  gridOf,
  HEIC,
  type HeifItem,
  heicSample,
  imir,
  irot,
  withDeclaredSize,
  withProperties,
} from '../support/images/heif-file.ts';
import { shareTestApp } from '../support/test-app.ts';

const app = shareTestApp();

/** The service's lossless rendering of a file at its own size. */
const request = (file: Buffer) => app.serve(file, '/attachments/1/{id}/a.heic?format=png');

async function decode(file: Buffer): Promise<Sharp> {
  const { statusCode, rawPayload } = await request(file);
  expect(statusCode).toBe(200);
  return sharp(rawPayload);
}

const orange = (40 * 64 + 56) * 3;
const grey = (40 * 64 + 8) * 3;
// (200, 80, 40) and the grey 128 in sRGB, by the matrices of CSS Color 4, SMPTE ST 2084 and ITU-R BT.2100.
test.each([
  ['sRGB', 1, 13, orange, [200, 80, 40]],
  ['Display P3', 12, 13, orange, [216, 69, 17]],
  ['BT.2020', 9, 14, orange, [245, 37, 16]],
  ['gamma 2.2', 1, 4, orange, [201, 79, 35]],
  ['gamma 2.8', 1, 5, orange, [189, 56, 17]],
  ['linear light', 1, 8, orange, [229, 152, 110]],
  ['PQ', 9, 16, grey, [181, 181, 181]],
  ['HLG', 9, 18, grey, [137, 137, 137]],
  ['PQ of unspecified primaries', 2, 16, grey, [181, 181, 181]],
])('code points of %s are converted to sRGB', async (_, primaries, transfer, at, expected) => {
  const nclx = box('colr', 'nclx', u16be(primaries), u16be(transfer), u16be(6), 0x80);
  const image = await decode(createHeif([withProperties('patches.heic', nclx)], HEIC));
  const shown = (await image.raw().toBuffer()).subarray(at, at + 3);
  const distances = expected.map((value, channel) => Math.abs(value - (shown[channel] ?? 0)));
  expect(Math.max(...distances)).toBeLessThanOrEqual(2);
});

// The goldens heic/* show the order of transforms and the places of apertures.
test('flips a picture horizontally if it is rotated by 180° and flipped vertically', async () => {
  const caps = await decode(heicSample('caps.heic'));
  const file = createHeif([withProperties('caps.heic', irot(2), imir(0))], HEIC);
  const swapped = await (await decode(file)).raw().toBuffer();
  expect(swapped.equals(await caps.flop().raw().toBuffer())).toBe(true);
});

describe('rejects a HEIC instead of rendering a part of it, with', () => {
  const damaged = (from: number, length: number, value: number): Buffer => {
    const file = Buffer.from(heicSample('caps.heic'));
    const data = file.indexOf('mdat', 0, 'latin1') + 4;
    return file.fill(value, data + from, data + from + length);
  };
  const tile = extractImage(heicSample('tile-0.heic'));
  const finer = extractImage(heicSample('tile-444.heic'));
  const tiles = (...items: readonly HeifItem[]): Buffer =>
    createHeif([gridOf(1, 2, [192, 64], [2, 3]), ...items], HEIC);
  const cutOff = { ...tile, data: tile.data.subarray(0, -40) };
  const wide = withDeclaredSize('tile-0.heic', 192, 64);
  const alphaWithoutTile: HeifItem = {
    ...gridOf(1, 2, [96, 64], [3]),
    properties: [alphaProperty],
    references: [
      ['dimg', [3]],
      ['auxl', [1]],
    ],
  };

  test.each([
    ['zeros in its data', damaged(3000, 400, 0)],
    ['ones in its data', damaged(3000, 400, 255)],
    ['junk in its data', damaged(2000, 50, 0x5a)],
    ['only junk as its data', damaged(4, 7000, 0x33)],
    ['a truncated tile', tiles(tile, cutOff)],
    ['a tile of junk', tiles(tile, { ...tile, data: Buffer.alloc(2000, 0x55) })],
    ['a tile of 4:4:4 after one of 4:2:0', tiles(tile, finer)],
    ['a tile of 4:2:0 after one of 4:4:4', tiles(finer, tile)],
    ['tiles of another size than declared', tiles(wide, wide)],
    ['alpha without a tile', createHeif([tile, alphaWithoutTile, tile], HEIC)],
    [
      'an aperture outside of it',
      createHeif([withProperties('caps.heic', clap(100, 60, 900))], HEIC),
    ],
    ['no parameter sets', createHeif([extractImage(heicSample('caps.heic'), 'hvcC')], HEIC)],
  ])('%s', async (_, file) => {
    const { statusCode, body } = await request(file);
    expect([statusCode, JSON.parse(body).code]).toEqual([422, 'UNPROCESSABLE_MEDIA']);
  });
});
