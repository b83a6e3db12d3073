import { execFileSync, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join as joinPath } from 'node:path';
import { deflateSync } from 'node:zlib';
import sharp, { type Sharp } from 'sharp';
import { describe, expect, test } from 'vitest';
import { afterIhdr, join, pngChunk, u32be } from '../formats/containers.ts';
import { createProfile, createTableProfile, toSrgb } from '../support/images/icc-profile.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';
import { shareTestApp } from '../support/test-app.ts';

// What most files with a profile look like, the goldens colour/* tell, and which profiles are read, formats/icc-profile.
// Here is what no original of theirs has; colours are computed from the standards, in double precision, without a library.

/** Largest difference of a channel to what the standards say, in levels of 255: two roundings, and that of a JPEG. */
const TOLERANCE = 2.5;
/** lcms2 goes by a coarser table than the profile's own, and by another one for each depth. */
const TABLE_TOLERANCE = 8;

/** Swatches of one colour each, which neither a codec nor a filter mixes where they are looked at. */
const SWATCH_PX = 16;
const COLUMNS = 6;
const EDGE_PX = COLUMNS * SWATCH_PX;

/** Corners, edges and middle of the cube of colours, and dark greys; alpha falls to three quarters. */
const swatches = Array.from({ length: COLUMNS ** 2 }, (_, index) => {
  const [red, green, blue] = [index % 3, Math.floor(index / 3) % 3, Math.floor(index / 9)];
  const colour = index < 27 ? [red / 2, green / 2, blue / 2] : Array(3).fill((index - 26) / 20);
  return [...colour, 1 - index / 144];
});

const colours = 'AdobeRGB';
const greys = 'grey of gamma 1.8';

interface Form {
  readonly space: typeof colours | typeof greys;
  /** Which samples of a swatch it has. */
  readonly samples: readonly [from: number, to: number];
  readonly encode: (image: Sharp) => Sharp | Promise<Buffer>;
}

const finest = { quality: 100, chromaSubsampling: '4:4:4' } as const;
const lossless = { lossless: true, effort: 0, chromaSubsampling: '4:4:4' } as const;
const forms: Readonly<Record<string, Form>> = {
  JPEG: {
    space: colours,
    samples: [0, 3],
    encode: (image) => image.toColourspace('srgb').jpeg(finest),
  },
  'PNG of 16 bits with alpha': {
    space: colours,
    samples: [0, 4],
    encode: (image) => image.toColourspace('rgb16').png(),
  },
  'AVIF of 10 bits with alpha': {
    space: colours,
    samples: [0, 4],
    encode: (image) => image.toColourspace('rgb16').avif({ ...lossless, bitdepth: 10 }),
  },
  'grey PNG of 16 bits': {
    space: greys,
    samples: [0, 1],
    encode: (image) => image.toColourspace('grey16').png(),
  },
  'grey AVIF': { space: greys, samples: [0, 1], encode: encodeGreyAvif },
};

/** libavif's encoder; sharp makes three channels of grey. */
const hasAvifenc = spawnSync('avifenc', ['--version']).error === undefined;

async function encodeGreyAvif(image: Sharp): Promise<Buffer> {
  const { path } = await useTemporaryFolder();
  const [png, avif] = [joinPath(path, 'grey.png'), joinPath(path, 'grey.avif')];
  await image.toColourspace('grey16').png().toFile(png);
  execFileSync('avifenc', ['--yuv', '400', '--depth', '8', '--lossless', png, avif], {
    stdio: 'pipe',
  });
  return readFile(avif);
}

/** Draws the swatches with these samples as a PNG of 16 bits. */
function drawSwatches(from: number, to: number): Promise<Buffer> {
  const channels = (to - from) as 1 | 3 | 4;
  const samples = Uint16Array.from({ length: EDGE_PX ** 2 * channels }, (_, at) => {
    const [x, y] = [Math.floor(at / channels) % EDGE_PX, Math.floor(at / channels / EDGE_PX)];
    const swatch = swatches[Math.floor(y / SWATCH_PX) * COLUMNS + Math.floor(x / SWATCH_PX)];
    return Math.round((swatch?.[from + (at % channels)] ?? 0) * 0xffff);
  });
  return sharp(samples, { raw: { width: EDGE_PX, height: EDGE_PX, channels } })
    .toColourspace(channels === 1 ? 'grey16' : 'rgb16')
    .png({ compressionLevel: 1 })
    .toBuffer();
}

const withProfile = (png: Uint8Array, profile: Uint8Array): Buffer =>
  afterIhdr(png, pngChunk('iCCP', join('x\0\0', deflateSync(profile))));

/** Samples in the middle of each swatch that a rendering shows, 0 to 255. */
async function readShown(rendering: Uint8Array): Promise<number[][]> {
  const { data, info } = await sharp(rendering)
    .toColourspace('srgb')
    .raw()
    .toBuffer({ resolveWithObject: true });
  const swatchPx = info.width / COLUMNS;
  return swatches.map((_, index) => {
    const x = Math.floor(((index % COLUMNS) + 0.5) * swatchPx);
    const y = Math.floor((Math.floor(index / COLUMNS) + 0.5) * swatchPx);
    const at = (y * info.width + x) * info.channels;
    return [...data.subarray(at, at + info.channels)];
  });
}

/** Between colours of swatches, in levels. */
function largestDifference(shown: readonly number[][], expected: readonly (readonly number[])[]) {
  return Math.max(
    ...expected.flatMap((colour, index) =>
      colour.map((value, channel) => Math.abs(value - (shown[index]?.[channel] ?? Infinity))),
    ),
  );
}

describe('what the service shows of a file with a profile', () => {
  const app = shareTestApp();

  const render = async (original: Uint8Array, query = '?format=webp'): Promise<number[][]> => {
    const { statusCode, rawPayload } = await app.serve(original, `/attachments/1/{id}/x${query}`);
    expect(statusCode).toBe(200);
    return await readShown(rawPayload);
  };

  test.for(Object.entries(forms))('colours in a %s', async ([name, form], { skip }) => {
    skip(name === 'grey AVIF' && !hasAvifenc, 'avifenc is not installed');
    const { space, samples, encode } = form;
    const png = withProfile(await drawSwatches(...samples), createProfile(space));
    const encoded = await encode(sharp(png).keepIccProfile());
    const original = Buffer.isBuffer(encoded) ? encoded : await encoded.toBuffer();
    const expected = swatches.map((swatch) => {
      const alpha = samples[1] === 4 ? [255 * (swatch[3] ?? 1)] : [];
      return [...toSrgb(space, swatch.slice(...samples).slice(0, 3)), ...alpha];
    });
    const shown = await render(original);
    expect(largestDifference(shown, expected)).toBeLessThanOrEqual(TOLERANCE);
  });

  test.each([
    ['of an unknown version', Buffer.concat([createProfile(colours)]).fill(0x63, 8, 9)],
    ['that is text', Buffer.from('no profile at all, but a text of some length. '.repeat(20))],
  ])('a profile %s changes no colour of 16 bits', async (_, profile) => {
    const plain = await drawSwatches(0, 3);
    const shown = await render(withProfile(plain, profile));
    expect(largestDifference(shown, await render(plain))).toBe(0);
  });

  test('colours of a profile that is a table are in 16 bits what they are in 8', async () => {
    const deep = withProfile(await drawSwatches(0, 3), createTableProfile(colours));
    const flat = await sharp(deep).keepIccProfile().toColourspace('srgb').png().toBuffer();
    const difference = largestDifference(await render(deep), await render(flat));
    expect(difference).toBeLessThanOrEqual(TABLE_TOLERANCE);
  });

  test('a gamma is applied to millions of pixels', async () => {
    const grey = await sharp({
      create: { width: 4096, height: 3072, channels: 3, background: '#010101' },
    })
      .png({ compressionLevel: 1 })
      .toBuffer();
    const linear = afterIhdr(grey, pngChunk('gAMA', u32be(100_000)));
    // sRGB of a light of 1 / 255
    expect((await render(linear, '?format=webp&width=1200'))[0]).toEqual([13, 13, 13]);
  });
});
