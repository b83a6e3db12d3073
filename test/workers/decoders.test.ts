import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import type { RenderJob } from '../../src/pipeline/ports.ts';
import { anyJob, noLosses, REAL_WORKER, sharePool } from '../support/processes/worker-pool.ts';

const classes = (names: string) => names.split(/\s+/).map((name) => `VipsForeignLoad${name}`);

/**
 * Every loader class of sharp's libvips, and whether it may run; `base` never runs by itself. When an upgrade of sharp
 * adds one, decide here: block all but the in-memory loaders of the four formats.
 */
const loaders = {
  allowed: classes('HeifBuffer JpegBuffer PngBuffer WebpBuffer'),
  blocked: classes(
    `CsvFile CsvSource HeifFile HeifSource JpegFile JpegSource MatrixFile MatrixSource NsgifBuffer NsgifFile NsgifSource
     PngFile PngSource Raw SvgBuffer SvgFile SvgSource TiffBuffer TiffFile TiffSource UhdrBuffer UhdrFile
     UhdrSource VipsFile VipsSource WebpFile WebpSource`,
  ),
  base: [
    'VipsForeignLoad',
    ...classes('Csv Heif Jp2k Jpeg Matrix Nsgif Openslide Pdf Png Svg Tiff Uhdr Vips Webp'),
  ],
};

const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>');

/** Files that libvips decodes; GIFs are decoded without it. */
const decodable = {
  gif: await pixels().gif().toBuffer(),
  svg,
  'svg, compressed': gzipSync(svg),
  tiff: await pixels().tiff().toBuffer(),
  'tiff with JPEG inside': await pixels().tiff({ compression: 'jpeg' }).toBuffer(),
};

test('every loader of libvips is in the table', () => {
  expect(findLoaders()).toEqual(Object.values(loaders).flat().sort());
});

describe('a worker', () => {
  const shared = sharePool({ workerFile: REAL_WORKER });
  const render = (original: Uint8Array, heightPx = 9, source: RenderJob['source'] = 'png') =>
    shared.pool.render(original, { ...anyJob, source, originalSize: { widthPx: 9, heightPx } });

  test('decodes five formats to the planned size', async () => {
    for (const format of ['jpeg', 'png', 'webp', 'gif', 'avif'] as const) {
      const original = await pixels().toFormat(format).toBuffer();
      expect((await sharp(await render(original, 9, format)).metadata()).format).toBe('png');
      await expect(render(original, 10, format), format).rejects.toMatchObject({
        code: 'UNPROCESSABLE_MEDIA',
        cause: { message: expect.stringContaining('Decoded 9×9 px; the header declares 9×10') },
      });
    }
  });

  test('rejects all other formats, even those that its libvips can decode, and keeps its process', async () => {
    const refused = { code: 'UNPROCESSABLE_MEDIA' };
    for (const [name, bytes] of Object.entries(decodable)) {
      // In this process, no loader is blocked.
      await expect(sharp(bytes).stats(), name).resolves.toBeDefined();
      await expect(render(bytes), name).rejects.toMatchObject(refused);
    }
    expect(shared.counted()).toEqual(noLosses);
  });
});

function pixels() {
  return sharp({ create: { width: 9, height: 9, channels: 3, background: '#a0b0c0' } });
}

/** Names of the classes in the shared library, in npm's directory for this platform. */
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
