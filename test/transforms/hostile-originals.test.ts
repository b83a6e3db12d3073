import { deflateSync, inflateSync } from 'node:zlib';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import {
  afterIhdr,
  afterSoi,
  join,
  jpegSegment,
  pngChunk,
  riffChunk,
  u32be,
  vp8x,
  webpFile,
} from '../formats/containers.ts';
import { corpusFile } from '../formats/facts-of.ts';
import { avifWithExif } from '../hostile/bombs/avif-bombs.ts';
import { exifInCircles } from '../hostile/bombs/metadata-bombs.ts';
import { samples, shareTestApp, useTestApp } from '../support/test-app.ts';

describe('an image that asks for much', () => {
  const app = shareTestApp();

  const expectRefusal = async (bytes: Uint8Array, path: string, code: string): Promise<void> => {
    const { statusCode, body } = await app.serve(bytes, path);
    expect([statusCode, JSON.parse(body).code]).toEqual([422, code]);
  };

  test('is refused where its image data are far more than it needs', async () => {
    const png = join(
      samples.png.subarray(0, 8),
      pngChunk('IHDR', join(u32be(16), u32be(16), '\x08\0\0\0\0')),
      pngChunk('IDAT', deflateSync(Buffer.alloc(80 * 2 ** 20))),
      pngChunk('IEND'),
    );
    await expectRefusal(png, '/emojis/3.webp?size=16', 'UNPROCESSABLE_MEDIA');
  });

  test('is refused where an edge is too long', async () => {
    const needle = await sharp({
      create: { width: 1_000_001, height: 2, channels: 3, background: '#abc' },
    })
      .png()
      .toBuffer();
    await expectRefusal(needle, '/attachments/1/2/needle?width=1', 'MEDIA_TOO_LARGE');
  });

  test('plays on where a GIF repeats 65 535 times, the most it can say', async () => {
    const gif = Buffer.from(corpusFile('gif-animated/wuffs__muybridge.gif'));
    const loop = gif.indexOf('NETSCAPE2.0');
    gif.writeUInt16LE(65_535, loop + 13);
    for (const url of ['/emojis/{id}.gif?size=16', '/emojis/{id}.webp?size=16&animated=true']) {
      const { statusCode, rawPayload } = await app.serve(gif, url);
      expect(statusCode).toBe(200);
      const plays = (await sharp(rawPayload, { animated: true }).metadata()).loop;
      expect(plays).toBe(url.includes('.gif') ? 65_536 : 65_535); // a WebP holds one less
    }
  });

  test('is refused at once where it has more segments than any real file', async () => {
    const segment = Buffer.from([0xff, 0xe1, 0, 2]);
    const jpeg = Buffer.concat([
      Buffer.from([0xff, 0xd8]),
      Buffer.alloc(4_000_000, segment),
      Buffer.from([0xff, 0xd9]),
    ]);
    await expectRefusal(jpeg, '/emojis/2.webp?size=16', 'UNPROCESSABLE_MEDIA');
  });
});

describe('EXIF that leads in circles', () => {
  // libexif would be at it for 10 to 40 s.
  const circles = exifInCircles();
  const blank = sharp({ create: { width: 16, height: 16, channels: 3, background: '#c33' } });
  const originals: Readonly<Record<string, () => Promise<Buffer>>> = {
    jpeg: async () =>
      afterSoi(await blank.clone().jpeg().toBuffer(), jpegSegment(0xe1, join('Exif\0\0', circles))),
    png: async () => afterIhdr(await blank.clone().png().toBuffer(), pngChunk('eXIf', circles)),
    webp: async () => {
      const image = (await blank.clone().webp().toBuffer()).subarray(12);
      return webpFile(vp8x(8, 16, 16), image, riffChunk('EXIF', circles));
    },
    avif: async () => avifWithExif(await blank.clone().avif({ effort: 0 }).toBuffer(), circles),
  };

  test.each(Object.keys(originals))('does not keep a worker busy: %s', async (name) => {
    const app = await useTestApp({ settings: { TRANSFORM_TIMEOUT_MS: '4000' } });
    const original = (await originals[name]?.()) ?? Buffer.alloc(0);
    expect((await app.serve(original, '/avatars/1/x.webp?size=16')).statusCode).toBe(200);
  });
});

describe('an interlaced png', () => {
  test('is refused where a row has a filter that there is not', async () => {
    const app = await useTestApp();
    const png = await sharp(samples.png).png({ progressive: true, palette: false }).toBuffer();
    const data = png.indexOf('IDAT', 0, 'latin1');
    const pixels = inflateSync(png.subarray(data + 4));
    pixels[0] = 9; // of the first row of the first pass; there are filters 0 to 4
    const damaged = Buffer.concat([
      png.subarray(0, data - 4),
      pngChunk('IDAT', deflateSync(pixels)),
      pngChunk('IEND'),
    ]);
    for (const way of ['x.webp?size=64', 'x.gif?size=64', 'x.png?size=32', 'x.jpg?size=4096']) {
      expect((await app.serve(damaged, `/avatars/{id}/${way}`)).statusCode, way).toBe(422);
    }
  });
});

describe('a jpeg that libjpeg warns of', () => {
  const app = shareTestApp();
  const photo = corpusFile('jpeg-photo/wuffs__hibiscus.regular.jpeg');

  const statusOf = async (bytes: Uint8Array): Promise<number> =>
    (await app.serve(bytes, '/avatars/{id}/x.webp?size=80')).statusCode;

  test('is served where only junk stands between two markers', async () => {
    // Before the first quantization table: junk bytes that are no marker.
    const table = photo.indexOf(Buffer.from([0xff, 0xdb]));
    const junk = Buffer.concat([
      photo.subarray(0, table),
      Buffer.from([0, 1, 2, 3]),
      photo.subarray(table),
    ]);
    expect(await statusOf(junk)).toBe(200);
  });

  test('is refused where a part of the picture is lost, junk or not', async () => {
    const table = photo.indexOf(Buffer.from([0xff, 0xdb]));
    const middle = Math.floor(photo.length / 2);
    for (const junk of [Buffer.alloc(0), Buffer.from([0, 1, 2])]) {
      const damaged = Buffer.concat([
        photo.subarray(0, table),
        junk,
        photo.subarray(table, middle),
        photo.subarray(middle + 8_000),
      ]);
      expect(await statusOf(damaged)).toBe(422);
    }
  });

  test('is refused where it ends in the middle', async () => {
    const damaged = Buffer.from(photo);
    const middle = Math.floor(photo.length / 2);
    damaged.set([0xff, 0xd9], middle); // an end of image in the middle of the data
    expect(await statusOf(damaged)).toBe(422);
  });
});
