import fc from 'fast-check';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { hasAscii } from '../../src/formats/byte-reader.ts';
import type { ImageFacts } from '../../src/formats/image-facts.ts';
import { readImageFacts } from '../../src/formats/read-image-facts.ts';
import { acceptedCuts, corpusCategories, corpusFile, corpusFiles, verdictOn } from './facts-of.ts';

const names = corpusFiles(...corpusCategories);

/** What sharp decodes although the file is cut off, or its structure broken behind its pixels. */
const stricterThanSharp = new Set([
  'hostile-truncated/derived__gifplayer-half.gif',
  'fuzz-jpeg/4a54d4858315.jpg',
  'fuzz-jpeg/68e76c25ad49.jpg',
  'fuzz-jpeg/6ebf5560b2f9.jpg',
  'fuzz-jpeg/af00e8fbd571.jpg',
  'fuzz-jpeg/c123afc9a6a8.jpg',
  'fuzz-jpeg/e89ad0ccdcb0.jpg',
  // Too large to be decoded by this test; a decoder would stop at their checksums too.
  'fuzz-png/a859fa96a385.png',
  'fuzz-png/dad2af0d65c8.png',
]);

/** Pixel data is not looked at: the container of these is whole, their pixels are not. */
const brokenPixels = new Set([
  'hostile-corrupt/imagepng__x_image-issue_1075.png',
  'hostile-corrupt/wuffs__pixel-data-none.gif',
  'hostile-corrupt/libavif__poc_b_506387278.avif',
]);

/** Decoding what is bigger would only cost time: the header alone is compared. */
const maxDecodedPx = 30_000_000;

type Reading = Awaited<ReturnType<typeof readWithSharp>>;

/** What sharp makes of a file: the same facts in the same words, or undefined where it fails. */
async function readWithSharp(original: Buffer) {
  const bytes = Buffer.from(original);
  // libvips does not know the brand of an animated AVIF, of which the primary image is shown.
  if (hasAscii(bytes, 8, 'avis')) bytes.write('avif', 8, 'latin1');
  const open = (isAnimated: boolean) =>
    sharp(bytes, { failOn: 'error', limitInputPixels: false, animated: isAnimated });
  try {
    const first = await open(false).metadata();
    const canAnimate = first.format === 'gif' || first.format === 'webp';
    const all = canAnimate ? await open(true).metadata() : first;
    if (first.width * first.height <= maxDecodedPx) {
      await open(false).raw().toBuffer();
    }
    const frames = canAnimate ? (all.pages ?? 1) : 1;
    return {
      format: first.compression === 'av1' ? 'avif' : first.format,
      widthPx: first.width,
      heightPx: first.height,
      orientation: first.orientation ?? 1,
      frames,
      animation: frames > 1 ? { delaysMs: all.delay, plays: all.loop } : undefined,
      isDirty:
        first.hasProfile ||
        first.space === 'cmyk' ||
        (first.orientation ?? 1) !== 1 ||
        [first.exif, first.xmp, first.iptc, first.icc, first.comments].some(
          (part) => part !== undefined,
        ),
    };
  } catch {
    return undefined;
  }
}

function isDecodedHere(reading: Reading): boolean {
  return reading !== undefined && /^(?:jpeg|png|webp|gif|avif)$/.test(reading.format ?? '');
}

describe('the corpus, compared with sharp', () => {
  test('is there', () => {
    expect(names.length).toBeGreaterThan(300);
  });

  test.each(names)('%s', async (name) => {
    const bytes = corpusFile(name);
    const reading = bytes.length === 0 ? undefined : await readWithSharp(bytes);
    const verdict = verdictOn(bytes);
    if (name.startsWith('heic/')) {
      // Of what sharp cannot decode, it reads the header all the same.
      const { width: widthPx, height: heightPx } = await sharp(bytes).metadata();
      expect(verdict).toMatchObject({ format: 'heic', widthPx, heightPx, orientation: 1 });
      return;
    }
    if (reading === undefined || !isDecodedHere(reading)) {
      expect(typeof verdict === 'string' || brokenPixels.has(name)).toBe(true);
      return;
    }
    if (stricterThanSharp.has(name)) {
      expect(verdict).toBe('corrupt');
      return;
    }
    const { isDirty, ...facts } = reading;
    // sharp tells of neither gAMA, tiles, scans, the frames of an APNG nor what can be rewritten; the tests of formats do.
    const unseen = {
      gamma: undefined,
      codedPixels: undefined,
      scans: undefined,
      animationFault: undefined,
      isRewritable: undefined,
    };
    const told = { ...(verdict as ImageFacts), ...unseen };
    if (facts.format === 'png' && bytes.subarray(0, bytes.indexOf('IDAT')).includes('acTL')) {
      const { frames, animation } = told;
      Object.assign(facts, { format: 'apng', frames, animation });
    }
    expect(told).toEqual({ ...facts, isClean: expect.any(Boolean) });
    if (isDirty) {
      expect(verdict).toMatchObject({ isClean: false });
    }
  });
});

describe('bytes that are no image decoded here', () => {
  test.each(['svg', 'hostile-svg', 'nonimage', 'other-image'])('every file of %s', (category) => {
    const files = names.filter((name) => name.startsWith(`${category}/`));
    expect(files).not.toHaveLength(0);
    for (const name of files) {
      expect([name, verdictOn(corpusFile(name))]).toEqual([name, 'unsupported']);
    }
  });

  test('no bytes at all', () => {
    expect(readImageFacts(new Uint8Array())).toBeUndefined();
  });
});

describe('a file cut off anywhere', () => {
  test.each([
    'jpeg-photo/wuffs__hippopotamus.jpeg',
    'jpeg-progressive/wuffs__peacock.progressive.jpeg',
    'jpeg-orientation/imagers__portrait_2.jpg',
    'png-8/wuffs__hippopotamus.regular.png',
    'png-interlaced/wuffs__hippopotamus.interlaced.png',
    'apng/imagers__dispose-background-blend-source.png',
    'webp-lossy/wuffs__hippopotamus.lossy.webp',
    'webp-lossless/imagewebp__color_index.webp',
    'webp-animated/sharp__rotating-squares.webp',
    'avif/libavif__white_1x1.avif',
    'avif/libavif__draw_points_idat.avif',
    'avif/libavif__clap_irot_imir_non_essential.avif',
  ])('%s has no facts', (name) => {
    const bytes = corpusFile(name);
    expect(verdictOn(bytes)).toBeTypeOf('object');
    expect(acceptedCuts(bytes)).toEqual([]);
  });

  test('a gif has some where a frame ends, for it needs no trailer', () => {
    const bytes = corpusFile('gif-animated/imagers__any-disposal.gif');
    const cuts = acceptedCuts(bytes);
    expect(cuts.map((length) => bytes[length - 1])).toEqual([0, 0, 0, 0, 0]);
    expect(cuts.at(-1)).toBe(bytes.length - 1);
  });
});

describe('mutilated files', () => {
  const seeds = [
    'jpeg-progressive/imagers__test.jpg',
    'jpeg-orientation/imagers__portrait_2.jpg',
    'png-orientation/derived__bricks-orientation6.png',
    'apng/wuffs__muybridge.apng',
    'webp-animated/sharp__rotating-squares.webp',
    'webp-lossless/imagewebp__tiny.webp',
    'gif-animated/wuffs__multiple-loop-counts.gif',
    'gif-delays/imagegif__beacon_xmp.gif',
    'avif/libavif__clap_irot_imir_non_essential.avif',
    'avif/libavif__draw_points_idat.avif',
    'avif/libavif__color_grid_alpha_nogrid.avif',
  ].map(corpusFile);
  const byte = fc.oneof(fc.constantFrom(0, 1, 0x21, 0x2c, 0x3b, 0x7f, 0x80, 0xff), fc.nat(255));
  // Most structure stands at the front, so half of the places are drawn from there.
  const place = fc.oneof(fc.nat(400), fc.nat(60_000));
  const edits = fc.array(fc.tuple(place, byte, fc.constantFrom('set', 'insert', 'cut')), {
    minLength: 1,
    maxLength: 6,
  });

  test('have facts, or none, or are corrupt; nothing else happens', () => {
    fc.assert(
      fc.property(fc.constantFrom(...seeds), edits, (seed, changes) => {
        let bytes = Buffer.from(seed);
        for (const [at, value, kind] of changes) {
          const offset = at % (bytes.length + 1);
          if (kind === 'set') {
            bytes.subarray(offset, offset + 1).fill(value);
          } else if (kind === 'insert') {
            const head = bytes.subarray(0, offset);
            bytes = Buffer.concat([head, Buffer.from([value]), bytes.subarray(offset)]);
          } else {
            bytes = Buffer.concat([bytes.subarray(0, offset), bytes.subarray(offset + value)]);
          }
        }
        const verdict = verdictOn(bytes);
        if (typeof verdict === 'object') {
          expect(verdict.widthPx).toBeGreaterThan(0);
          expect(verdict.heightPx).toBeGreaterThan(0);
          expect(verdict.frames).toBeGreaterThan(0);
          if (verdict.animationFault === undefined) {
            expect(verdict.animation?.delaysMs.length ?? 1).toBe(verdict.frames);
          } else {
            expect(verdict.animation).toBeUndefined();
          }
        }
      }),
      { numRuns: 5_000 },
    );
  });

  test('of nothing but a magic and noise as well', () => {
    const magics = [
      '\xff\xd8',
      '\x89PNG\r\n\x1a\n',
      'RIFF\x40\0\0\0WEBPVP8X',
      'GIF89a',
      '\0\0\0\x10ftypavif\0\0\0\0\0\0\0\x80meta',
    ];
    fc.assert(
      fc.property(fc.constantFrom(...magics), fc.uint8Array({ maxLength: 300 }), (magic, noise) => {
        verdictOn(Buffer.concat([Buffer.from(magic, 'latin1'), noise]));
      }),
      { numRuns: 3_000 },
    );
  });
});
