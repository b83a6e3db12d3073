import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import sharp, { type FormatEnum } from 'sharp';
import { describe, expect, test } from 'vitest';
import { corpusFile } from '../formats/facts-of.ts';
import { anyJob, startReal, usePools } from '../support/processes/worker-pool.ts';

const start = usePools();

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
const undecodable: Readonly<Record<string, Buffer>> = {
  'tiff, little-endian': corpusFile('other-image/filetype__fixture-little-endian.tif'),
  bmp: corpusFile('other-image/wuffs__bricks-color.bmp'),
  ico: corpusFile('other-image/wuffs__hippopotamus.regular.ico'),
  jxl: corpusFile('other-image/filetype__fixture.jxl'),
  heic: corpusFile('heic/filetype__fixture-heic.heic'),
  pdf: corpusFile('nonimage/filetype__fixture.pdf'),
  xml: corpusFile('nonimage/filetype__fixture.xml'),
  raw: Buffer.alloc(1_000, 7),
  ...mapValues(
    {
      ppm: `P6\n2 2\n255\n${'\0'.repeat(12)}`,
      'ppm, as text': 'P3\n1 1\n255\n1 2 3\n',
      pgm: 'P5\n2 2\n255\n\0\0\0\0',
      pbm: 'P1\n1 1\n1\n',
      pam: 'P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nENDHDR\n\0',
      pfm: `PF\n1 1\n-1.0\n${'\0'.repeat(12)}`,
      radiance: '#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\n\x01\x02\x03\x80',
      fits: ['SIMPLE  =                    T', 'BITPIX  =                    8']
        .concat('NAXIS   =                    0', 'END')
        .map((card) => card.padEnd(80))
        .join('')
        .padEnd(2880),
      csv: '1,2,3\n4,5,6\n',
      matrix: '2 2\n1 2\n3 4\n',
      mat: 'MATLAB 5.0 MAT-file'.padEnd(128),
      'magick vector graphics': 'push graphic-context\nviewbox 0 0 1 1\n',
      empty: ' ',
    },
    'latin1',
  ),
  ...mapValues(
    {
      'jxl codestream': 'ff0a7f0700000000',
      vips: `b6a6f208${'00'.repeat(64)}`,
      'vips, the other way round': `08f2a6b6${'00'.repeat(64)}`,
      jp2: '0000000c6a5020200d0a870a00000014667479706a703220',
      'j2k codestream': 'ff4fff51002f0000000000010000000100',
      exr: '762f310102000000',
      psd: '38425053000100000000000000030000000100000001000800030000',
      dz: '504b0304140000000000',
      ultrahdr: 'ffd8ffe1',
      nifti: `5c010000${'00'.repeat(344)}`,
    },
    'hex',
  ),
};

function mapValues(texts: Readonly<Record<string, string>>, encoding: BufferEncoding) {
  return Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [name, Buffer.from(text, encoding)]),
  );
}

describe('the loaders of libvips', () => {
  test('are those that were decided about', () => {
    expect(findLoaders()).toEqual(Object.values(loaders).flat().sort());
  });

  test('read from memory what was decided about', () => {
    const formats = Object.keys(sharp.format) as (keyof FormatEnum)[];
    const found = formats.filter((format) => sharp.format[format].input.buffer);
    expect(found.sort()).toEqual(Object.keys(readable).sort());
  });
});

describe('a worker', () => {
  const startWorker = async () => {
    const { renderer, render } = await startReal(start);
    return {
      renderer,
      render: (original: Uint8Array, heightPx = 9) =>
        render(original, { ...anyJob, originalSize: { widthPx: 9, heightPx } }),
    };
  };

  test('decodes five formats, to the size that was planned', async () => {
    const { render } = await startWorker();
    for (const format of ['jpeg', 'png', 'webp', 'gif', 'avif'] as const) {
      const original = await pixels().toFormat(format).toBuffer();
      expect((await sharp(await render(original)).metadata()).format).toBe('png');
      await expect(render(original, 10), format).rejects.toMatchObject({
        code: 'UNPROCESSABLE_MEDIA',
        cause: { message: expect.stringContaining('Decoded 9×9 px; the header says 9×10') },
      });
    }
  });

  test('refuses all others, those too that its libvips could decode, and loses no process over it', async () => {
    const { renderer, render } = await startWorker();
    const refused = { code: 'UNPROCESSABLE_MEDIA' };
    for (const [name, original] of Object.entries(decodable)) {
      const bytes = await original();
      // In this process, where nothing is blocked.
      await expect(sharp(bytes).stats(), name).resolves.toBeDefined();
      await expect(render(bytes), name).rejects.toMatchObject(refused);
    }
    for (const [name, bytes] of Object.entries(undecodable))
      await expect(render(bytes), name).rejects.toMatchObject(refused);
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
