import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import sharp, { type FormatEnum } from 'sharp';
import { beforeAll, describe, expect, test } from 'vitest';
import { ALLOWED_LOADERS } from '../../src/workers/child/sharp-setup.ts';
import { WorkerPool } from '../../src/workers/worker-pool.ts';
import { corpusFile } from '../formats/facts-of.ts';
import { anyJob, poolOptions, REAL_WORKER } from '../support/processes/worker-pool.ts';

const classes = (names: string) => names.split(/\s+/).map((name) => `VipsForeignLoad${name}`);

/**
 * Every loader class in the libvips that sharp brings along, and whether it may run. `base`: never run by itself.
 * An upgrade of sharp means a decision here about what is new; it is to be blocked but for the five formats,
 * from memory.
 */
const loaders = {
  allowed: classes('HeifBuffer JpegBuffer NsgifBuffer PngBuffer WebpBuffer'),
  blocked: classes(
    `CsvFile CsvSource HeifFile HeifSource JpegFile JpegSource MatrixFile MatrixSource NsgifFile NsgifSource
     PngFile PngSource Raw SvgBuffer SvgFile SvgSource TiffBuffer TiffFile TiffSource UhdrBuffer UhdrFile
     UhdrSource VipsFile VipsSource WebpFile WebpSource`,
  ),
  base: [
    'VipsForeignLoad',
    ...classes('Csv Heif Jp2k Jpeg Matrix Nsgif Openslide Pdf Png Svg Tiff Uhdr Vips Webp'),
  ],
};

/** What sharp says it could read from memory. */
const readable: Readonly<Record<string, 'allowed' | 'blocked'>> = {
  jpeg: 'allowed',
  png: 'allowed',
  webp: 'allowed',
  gif: 'allowed',
  heif: 'allowed', // for AVIF; there is no decoder for HEVC in it
  tiff: 'blocked',
  svg: 'blocked',
  raw: 'blocked', // no loader: asked for by an option alone
};

const svg = Buffer.from(
  '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect/></svg>',
);

/** Of the formats that a decoder is there for. */
const decodable: Readonly<Record<string, () => Promise<Buffer>>> = {
  svg: async () => svg,
  'svg with a prolog': async () => Buffer.concat([Buffer.from('<?xml version="1.0"?>\n'), svg]),
  'svg, compressed': async () => gzipSync(svg),
  'svg of the corpus': async () => corpusFile('svg/sharp__circle.svg'),
  tiff: () => pixels().tiff().toBuffer(),
  'tiff with JPEG inside': () => pixels().tiff({ compression: 'jpeg' }).toBuffer(),
  'tiff of the corpus': async () => corpusFile('other-image/wuffs__bricks-color.tiff'),
};

/** Of others: by their magic bytes at least, should a decoder come with an upgrade. */
const undecodable: Readonly<Record<string, () => Promise<Buffer>>> = {
  'tiff, little-endian': async () => corpusFile('other-image/filetype__fixture-little-endian.tif'),
  bmp: async () => corpusFile('other-image/wuffs__bricks-color.bmp'),
  ico: async () => corpusFile('other-image/wuffs__hippopotamus.regular.ico'),
  jxl: async () => corpusFile('other-image/filetype__fixture.jxl'),
  'jxl codestream': async () => Buffer.from('ff0a7f0700000000', 'hex'),
  heic: async () => corpusFile('heic/filetype__fixture-heic.heic'),
  pdf: async () => corpusFile('nonimage/filetype__fixture.pdf'),
  xml: async () => corpusFile('nonimage/filetype__fixture.xml'),
  ppm: async () => Buffer.concat([Buffer.from('P6\n2 2\n255\n'), Buffer.alloc(12)]),
  'ppm, as text': async () => Buffer.from('P3\n1 1\n255\n1 2 3\n'),
  pgm: async () => Buffer.concat([Buffer.from('P5\n2 2\n255\n'), Buffer.alloc(4)]),
  pbm: async () => Buffer.from('P1\n1 1\n1\n'),
  pam: async () => Buffer.from('P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nENDHDR\n\0'),
  pfm: async () => Buffer.concat([Buffer.from('PF\n1 1\n-1.0\n'), Buffer.alloc(12)]),
  radiance: async () =>
    Buffer.from('#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\n\x01\x02\x03\x80', 'latin1'),
  fits: async () =>
    Buffer.concat([
      ...['SIMPLE  =                    T', 'BITPIX  =                    8']
        .concat('NAXIS   =                    0', 'END')
        .map((card) => Buffer.from(card.padEnd(80))),
      Buffer.alloc(2880 - 320, ' '),
    ]),
  csv: async () => Buffer.from('1,2,3\n4,5,6\n'),
  matrix: async () => Buffer.from('2 2\n1 2\n3 4\n'),
  vips: async () => Buffer.concat([Buffer.from('b6a6f208', 'hex'), Buffer.alloc(64)]),
  'vips, the other way round': async () =>
    Buffer.concat([Buffer.from('08f2a6b6', 'hex'), Buffer.alloc(64)]),
  raw: async () => Buffer.alloc(1_000, 7),
  jp2: async () => Buffer.from('0000000c6a5020200d0a870a00000014667479706a703220', 'hex'),
  'j2k codestream': async () => Buffer.from('ff4fff51002f0000000000010000000100', 'hex'),
  exr: async () => Buffer.from('762f310102000000', 'hex'),
  psd: async () => Buffer.from('38425053000100000000000000030000000100000001000800030000', 'hex'),
  dz: async () => Buffer.from('504b0304140000000000', 'hex'),
  ultrahdr: async () => Buffer.from('ffd8ffe1', 'hex'),
  nifti: async () => Buffer.concat([Buffer.from('5c010000', 'hex'), Buffer.alloc(344)]),
  mat: async () => Buffer.from('MATLAB 5.0 MAT-file'.padEnd(128)),
  'magick vector graphics': async () => Buffer.from('push graphic-context\nviewbox 0 0 1 1\n'),
  empty: async () => Buffer.from(' '),
};

describe('the loaders of libvips', () => {
  test('are those that were decided about', () => {
    expect(findLoaders()).toEqual(Object.values(loaders).flat().sort());
  });

  test('are allowed as it says here, and no other', () => {
    expect([...ALLOWED_LOADERS].sort()).toEqual(loaders.allowed);
  });

  test('read from memory what was decided about', () => {
    const formats = Object.keys(sharp.format) as (keyof FormatEnum)[];
    const found = formats.filter((format) => sharp.format[format].input.buffer);
    expect(found.sort()).toEqual(Object.keys(readable).sort());
  });
});

describe('a worker', () => {
  const renderer = new WorkerPool({ ...poolOptions, workerFile: REAL_WORKER });
  beforeAll(async () => {
    await renderer.start();
    return () => renderer.stop();
  });
  const render = (original: Uint8Array, heightPx = 9) => {
    const { signal } = new AbortController();
    const job = { ...anyJob, originalSize: { widthPx: 9, heightPx } };
    return renderer.render(original, job, { lane: 'light', timeoutMs: 20_000, signal });
  };

  test.each(['jpeg', 'png', 'webp', 'gif', 'avif'] as const)('decodes %s', async (format) => {
    const original = await pixels().toFormat(format).toBuffer();
    const { format: encoded } = await sharp(await render(original)).metadata();
    expect(encoded).toBe('png');
  });

  test.each(['jpeg', 'png', 'webp', 'gif', 'avif'] as const)(
    'refuses a %s that it decodes to another size than was planned',
    async (format) => {
      const original = await pixels().toFormat(format).toBuffer();
      await expect(render(original, 10)).rejects.toMatchObject({
        code: 'UNPROCESSABLE_MEDIA',
        cause: { message: expect.stringContaining('Decoded 9×9 px; the header says 9×10') },
      });
    },
  );

  test('refuses an avif grid with a tile of junk', async () => {
    const sofa = corpusFile('avif/libavif__sofa_grid1x5_420.avif');
    const originalSize = { widthPx: 1024, heightPx: 770 };
    const job = { ...anyJob, source: 'avif', originalSize } as const;
    const options = {
      lane: 'light',
      timeoutMs: 20_000,
      signal: new AbortController().signal,
    } as const;
    expect((await renderer.render(sofa, job, options)).length).toBeGreaterThan(1000);
    // `iloc` has 14 bytes an item; the last 8 are where it lies and how long it is. The third tile.
    const at = sofa.indexOf('iloc', 0, 'latin1') + 12 + 14 * 4 - 8;
    const junk = sofa.fill(0x55, sofa.readUInt32BE(at), sofa.readUInt32BE(at) + 4096);
    await expect(renderer.render(junk, job, options)).rejects.toMatchObject({
      code: 'UNPROCESSABLE_MEDIA',
    });
  });

  test.each(Object.keys(decodable))('refuses %s, which its libvips could decode', async (name) => {
    const original = (await decodable[name]?.()) ?? Buffer.alloc(0);
    // In this process, where nothing is blocked.
    await expect(sharp(original).stats()).resolves.toBeDefined();
    await expect(render(original)).rejects.toMatchObject({ code: 'UNPROCESSABLE_MEDIA' });
  });

  test.each(Object.keys(undecodable))('refuses %s', async (name) => {
    const original = (await undecodable[name]?.()) ?? Buffer.alloc(0);
    await expect(render(original)).rejects.toMatchObject({ code: 'UNPROCESSABLE_MEDIA' });
  });

  test('has lost no process over it', () => {
    expect(renderer.counters).toEqual({ restarts: 0, kills: 0, recycles: 0 });
  });
});

function pixels() {
  return sharp({ create: { width: 9, height: 9, channels: 3, background: '#a0b0c0' } });
}

/** Names of classes in the shared library, wherever npm has put it for this platform. */
function findLoaders(): string[] {
  const packages = join(dirname(createRequire(import.meta.url).resolve('sharp')), '../../@img');
  const libraries = readdirSync(packages, { recursive: true, encoding: 'utf8' }).filter((file) =>
    /(^|[/\\])libvips-(cpp|42).*(\.so|\.dylib|\.dll)/.test(file),
  );
  const names = libraries.flatMap((file) => [
    ...readFileSync(join(packages, file), 'latin1').matchAll(/VipsForeignLoad\w*/g),
  ]);
  return [...new Set(names.map(([name]) => name))].sort();
}
