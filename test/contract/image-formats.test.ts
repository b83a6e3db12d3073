import { describe, expect, it } from 'vitest';
import {
  formatOfExtension,
  isLossless,
  outputFormats,
  sourceFormats,
} from '../../src/contract/image-formats.ts';

describe('formatOfExtension', () => {
  it('takes jpg and jpeg for one format', () => {
    expect(formatOfExtension('jpg')).toBe('jpeg');
    expect(formatOfExtension('jpeg')).toBe('jpeg');
  });

  it.each(['png', 'webp', 'gif'] as const)('leaves %s as it is', (extension) => {
    expect(formatOfExtension(extension)).toBe(extension);
  });
});

describe('formats of originals', () => {
  it('are those of contract §3, each sent in its own or, without an encoder, in webp', () => {
    const names = Object.entries(sourceFormats).map(([format, row]) => [
      format,
      row.mimeType,
      row.encodesAs,
      ...(row.animatesAs === undefined ? [] : [row.animatesAs]),
    ]);
    expect(names).toEqual([
      ['jpeg', 'image/jpeg', 'jpeg'],
      ['png', 'image/png', 'png'],
      ['apng', 'image/apng', 'png', 'webp'],
      ['webp', 'image/webp', 'webp'],
      ['gif', 'image/gif', 'gif'],
      ['avif', 'image/avif', 'webp'],
    ]);
  });
});

describe('formats of results', () => {
  it.each([
    // libjpeg's JPEG_MAX_DIMENSION; the format itself has room for the 65 535 of contract §3
    { format: 'jpeg', hasAlpha: false, canAnimate: false, maxEdgePx: 65_500 },
    { format: 'png', hasAlpha: true, canAnimate: false, maxEdgePx: 2_147_483_647 },
    { format: 'webp', hasAlpha: true, canAnimate: true, maxEdgePx: 16_383 },
    { format: 'gif', hasAlpha: true, canAnimate: true, maxEdgePx: 65_535 },
  ] as const)('$format can what contract §3 says', ({ format, ...capabilities }) => {
    expect(outputFormats[format]).toMatchObject({ mimeType: `image/${format}`, ...capabilities });
  });

  it('are these four and no more', () => {
    expect(Object.keys(outputFormats).sort()).toEqual(['gif', 'jpeg', 'png', 'webp']);
  });

  it('jpeg: quality 80, 20, and 100 with 4:4:4', () => {
    const { high, low, lossless } = outputFormats.jpeg.qualities;
    expect([high.quality, low.quality, lossless.quality]).toEqual([80, 20, 100]);
    expect(lossless.chromaSubsampling).toBe('4:4:4');
  });

  it('webp: lossy at 80 and 20, lossless to the pixel', () => {
    const { high, low, lossless } = outputFormats.webp.qualities;
    expect([high.quality, low.quality]).toEqual([80, 20]);
    expect('lossless' in high || 'lossless' in low).toBe(false);
    expect(lossless).toMatchObject({ lossless: true, exact: true });
  });

  it('png: true colour for high and lossless, a palette for low', () => {
    const { high, low, lossless } = outputFormats.png.qualities;
    expect([high.palette, low.palette, lossless.palette]).toEqual([false, true, false]);
  });

  it('gif: 256 colours, fewer for low, and no frame dropped', () => {
    const { high, low, lossless } = outputFormats.gif.qualities;
    expect([high.colours, lossless.colours]).toEqual([256, 256]);
    expect(low.colours).toBeLessThan(256);
    for (const settings of [high, low, lossless]) expect(settings.keepDuplicateFrames).toBe(true);
  });
});

describe('isLossless', () => {
  it.each([
    ['png', 'high', true],
    ['png', 'lossless', true],
    ['png', 'low', false],
    ['gif', 'high', true],
    ['gif', 'lossless', true],
    ['gif', 'low', false],
    ['webp', 'high', false],
    ['webp', 'lossless', true],
    ['webp', 'low', false],
    ['jpeg', 'high', false],
    ['jpeg', 'lossless', true],
    ['jpeg', 'low', false],
  ] as const)('%s at %s: %s', (format, quality, expected) => {
    expect(isLossless(format, quality)).toBe(expected);
  });
});
