import sharp from 'sharp';
import { describe, expect, it, test } from 'vitest';
import {
  extensions,
  formatOfExtension,
  isLossless,
  outputFormats,
  type Quality,
  sourceFormats,
} from '../../src/contract/image-formats.ts';
import { PIPELINE_RELEASE } from '../../src/contract/pipeline-release.ts';

it('takes jpg and jpeg for one format, and every other extension for its own', () => {
  const formats = extensions.map((extension) => [extension, formatOfExtension(extension)]);
  const others = ['png', 'webp', 'gif'].map((format) => [format, format]);
  expect(formats.sort()).toEqual([['jpg', 'jpeg'], ['jpeg', 'jpeg'], ...others].sort());
});

test('originals are of contract §3, each sent in its own format or, without an encoder, in webp', () => {
  const all = Object.entries(sourceFormats).map(([format, row]) => {
    expect(row.mimeType).toBe(`image/${format}`);
    const moving = row.animatesAs === undefined ? '' : `, moving ${row.animatesAs}`;
    return [format, row.encodesAs + moving];
  });
  expect(Object.fromEntries(all)).toEqual({
    jpeg: 'jpeg',
    png: 'png',
    apng: 'png, moving webp',
    webp: 'webp',
    gif: 'gif',
    avif: 'webp',
    heic: 'webp',
  });
});

describe('results', () => {
  /** By contract §3; each has the qualities that lose nothing, and what else a quality says. */
  const rows = [
    // libjpeg's JPEG_MAX_DIMENSION; the format itself has room for the 65 535 of the contract.
    { format: 'jpeg', hasAlpha: false, canAnimate: false, maxEdgePx: 65_500, exact: ['lossless'] },
    {
      format: 'png',
      hasAlpha: true,
      canAnimate: false,
      maxEdgePx: 2 ** 31 - 1,
      exact: ['high', 'lossless'],
    },
    { format: 'webp', hasAlpha: true, canAnimate: true, maxEdgePx: 16_383, exact: ['lossless'] },
    {
      format: 'gif',
      hasAlpha: true,
      canAnimate: true,
      maxEdgePx: 65_535,
      exact: ['high', 'lossless'],
    },
  ] as const;

  it('are in these formats and no others', () => {
    const names: readonly string[] = rows.map(({ format }) => format);
    expect(Object.keys(outputFormats).sort()).toEqual(names.toSorted());
  });

  it.each(rows)('of $format can what contract §3 says', ({ format, exact, ...capabilities }) => {
    expect(outputFormats[format]).toMatchObject({ mimeType: `image/${format}`, ...capabilities });
    const qualities: Quality[] = ['high', 'low', 'lossless'];
    expect(qualities.filter((quality) => isLossless(format, quality))).toEqual(exact);
  });

  it.each([
    ['jpeg', { quality: 80 }, { quality: 20 }, { quality: 100, chromaSubsampling: '4:4:4' }],
    ['webp', { quality: 80 }, { quality: 20 }, { lossless: true, exact: true }],
    ['png', { palette: false }, { palette: true }, { palette: false }],
    ['gif', { colours: 256 }, { colours: 16 }, { colours: 256 }],
  ] as const)('of %s have the qualities of contract §3', (format, high, low, lossless) => {
    const { qualities } = outputFormats[format];
    expect(qualities).toMatchObject({ high, low, lossless });
    for (const quality of Object.values(qualities)) {
      // What is lossy does not say otherwise.
      expect(quality.lossless ?? false).toBe(format === 'webp' && quality === qualities.lossless);
    }
  });
});

// Fails when an upgrade changes the codecs: the bytes may then be others, and so must the ETags.
test('the pipeline release names the codecs that are installed', () => {
  const { sharp: version, vips } = sharp.versions;
  expect(PIPELINE_RELEASE).toMatch(/^\d+-/);
  expect(PIPELINE_RELEASE.replace(/^\d+-/, '')).toBe(`sharp${version}-vips${vips}`);
});
