import { readFileSync } from 'node:fs';
import { deflateSync, inflateSync } from 'node:zlib';
import sharp from 'sharp';
import { expect, test } from 'vitest';
import { openHeif } from '../../src/formats/heif/heif-file.ts';
import { afterIhdr, join, pngChunk, u16be, u32be, withWrongCrc } from '../formats/containers.ts';
import { corpusFile } from '../formats/header-of.ts';
import { drawApngChunks, formatChunks } from '../support/images/draw-apng.ts';
import { box, createHeif, extractImage } from '../support/images/heif-file.ts';
import { samples, shareTestApp, useTestApp } from '../support/test-app.ts';
import { atScale } from '../support/test-scale.ts';

const app = shareTestApp();
const statusOf = async (bytes: Uint8Array, name = 'x.webp?size=80'): Promise<number> =>
  (await app.serve(bytes, `/avatars/{id}/${name}`)).statusCode;

test('rejects an interlaced PNG with an unknown filter in a row', async () => {
  const png = await sharp(samples.png).png({ progressive: true, palette: false }).toBuffer();
  const data = png.indexOf('IDAT', 0, 'latin1');
  const pixels = inflateSync(png.subarray(data + 4));
  pixels[0] = 9; // filter of the first row of the first pass; the known filters are 0 to 4
  const idat = pngChunk('IDAT', deflateSync(pixels));
  const damaged = join(png.subarray(0, data - 4), idat, pngChunk('IEND'));
  for (const way of ['x.webp?size=64', 'x.gif?size=64', 'x.png?size=32', 'x.jpg?size=4096']) {
    expect(await statusOf(damaged, way), way).toBe(422);
  }
});

test('rejects a PNG with a wrong checksum in its last image data, decoded or not', async () => {
  const intact = await sharp(await sharp(samples.png).resize(200, 400, { fit: 'fill' }).toBuffer())
    .png({ compressionLevel: 0 })
    .toBuffer();
  const png = withWrongCrc(intact, 'IDAT');
  for (const path of [
    '/avatars/{id}/x.png?size=256',
    '/avatars/{id}/x.png?size=64',
    '/avatars/{id}/x.webp?size=256',
    '/attachments/1/{id}/x.png?width=100&height=20',
    '/attachments/1/{id}/x.png?format=png&width=4096',
  ]) {
    expect((await app.serve(png, path)).statusCode, path).toBe(422);
  }
});

test('rejects an animation of an APNG with a wrong checksum in its image data', async () => {
  const apng = withWrongCrc(corpusFile('apng/imagers__ball.png'), 'IDAT');
  expect((await app.serve(apng, '/emojis/{id}.gif?size=64')).statusCode).toBe(422);
});

test('serves an APNG with a truncated frame only as a still', async () => {
  const draw = (): number[] => [200, 30, 90, 255];
  const small = { draw, left: 4, top: 4, widthPx: 8, heightPx: 8 };
  const chunks = drawApngChunks({ widthPx: 20, heightPx: 20, frames: [{ draw }, small] });
  const { type, data } = chunks.at(-2) ?? expect.fail();
  const broken = formatChunks(chunks.with(-2, { type, data: data.subarray(0, -8) }));
  const animated = await app.serve(broken, '/stickers/{id}.webp');
  expect([animated.statusCode, animated.json().code]).toEqual([422, 'UNPROCESSABLE_MEDIA']);
  for (const path of ['/stickers/{id}.webp?animated=false', '/emojis/{id}.png']) {
    expect((await app.serve(broken, path)).statusCode).toBe(200);
  }
});

const photo = corpusFile('jpeg-photo/wuffs__hibiscus.regular.jpeg');
/** Its first quantization table; junk may precede it. */
const table = photo.indexOf(Buffer.from([0xff, 0xdb]));
const middle = Math.floor(photo.length / 2);
const [head, upper] = [photo.subarray(0, table), photo.subarray(table, middle)];
const lower = photo.subarray(middle);

// All of these are warnings to libjpeg.
test.each([
  ['served with junk between two markers', 200, join(head, 0, 1, 2, 3, upper, lower)],
  ['rejected with a missing part of the picture', 422, join(head, upper, lower.subarray(8_000))],
  ['rejected with junk and a missing part', 422, join(head, 0, 1, 2, upper, lower.subarray(8_000))],
  ['rejected if it ends in the middle', 422, join(head, upper, 0xff, 0xd9, lower.subarray(2))],
])('a jpeg is %s', async (_, status, jpeg) => {
  expect(await statusOf(jpeg)).toBe(status);
});

/** A large PNG of one colour. */
const plain = (width: number, height: number, background: string) =>
  sharp({ create: { width, height, channels: 3, background } })
    .png({ compressionLevel: 1 })
    .toBuffer();

test('applies a gamma to millions of pixels', async () => {
  const gamma = pngChunk('gAMA', u32be(100_000));
  const original = afterIhdr(await plain(4096, 3072, '#010101'), gamma);
  const { rawPayload } = await app.serve(original, '/avatars/{id}/x.png?size=16');
  // sRGB of the linear value 1 / 255
  expect([...(await sharp(rawPayload).raw().toBuffer())].slice(0, 3)).toEqual([13, 13, 13]);
});

test.each(atScale([], [10_000]))(
  'renders a GIF of low quality and %i² px within the memory of a worker',
  async (edgePx) => {
    const app = await useTestApp({ settings: { TRANSFORM_TIMEOUT_MS: '60000' } });
    const path = '/attachments/1/{id}/x?format=gif&quality=low';
    const original = await plain(edgePx, edgePx, '#fed');
    const { statusCode, rawPayload } = await app.serve(original, path);
    expect(statusCode).toBe(200);
    expect(await sharp(rawPayload).metadata()).toMatchObject({ width: edgePx, height: edgePx });
    expect(app.workers.counters).toMatchObject({ restarts: 0, kills: 0 });
  },
  120_000,
);

test.each(atScale([], [10_000]))(
  'converts code points of an AVIF of %i² px within the memory of a worker',
  async (edgePx) => {
    const app = await useTestApp({ settings: { TRANSFORM_TIMEOUT_MS: '60000' } });
    const { properties, ...rest } = extractImage(readFileSync(`fixtures/flat-avif/${edgePx}.avif`));
    const nclx = box('colr', 'nclx', u16be(1), u16be(8), u16be(6), 0x80);
    const original = createHeif([{ ...rest, properties: [...properties, nclx] }]);
    const { statusCode } = await app.serve(original, '/avatars/{id}/x.png?size=16');
    expect(statusCode).toBe(200);
    expect(app.workers.counters).toMatchObject({ restarts: 0, kills: 0 });
  },
  120_000,
);

/** Reads a file of avifenc: its tiles are hidden items, and only images derived from them are shown. */
const sample = (name: string) => readFileSync(`fixtures/avifenc/${name}`);

const ofParts = {
  'a grid': sample('3x3.avif'),
  'a grid and a grid of alpha': sample('2x2-alpha-10-bit.avif'),
  'alpha for each tile': corpusFile('avif/libavif__color_grid_alpha_nogrid.avif'),
  'tiles that are not hidden': corpusFile('avif/libavif__sofa_grid1x5_420.avif'),
  'no grid': sample('alpha-turned.avif'),
};

test.each(Object.entries(ofParts))('returns 422 for an undecodable part of %s', async (_, file) => {
  expect(await statusOf(file)).toBe(200);
  const heif = openHeif(file);
  const parts = [...(heif?.types ?? [])].filter(([, type]) => type === 'av01');
  expect(parts.length).toBeGreaterThan(1);
  for (const [part] of parts) {
    const [{ start, end } = { start: 0, end: 0 }] = heif?.locations.get(part) ?? [];
    const broken = Buffer.from(file).fill(0x55, start + 2, Math.min(end, start + 4096));
    expect(await statusOf(broken), `item ${part}`).toBe(422);
  }
});
