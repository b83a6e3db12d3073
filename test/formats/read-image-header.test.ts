import fc from 'fast-check';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { hasAscii } from '../../src/formats/byte-reader.ts';
import { corpusCategories, corpusFile, corpusFiles, verdictOn } from './header-of.ts';

const names = corpusFiles(...corpusCategories);

/** Files that sharp decodes although they are truncated, or damaged after their pixels. */
const stricterThanSharp = new Set([
  'hostile-truncated/derived__gifplayer-half.gif',
  'fuzz-jpeg/4a54d4858315.jpg',
  'fuzz-jpeg/68e76c25ad49.jpg',
  'fuzz-jpeg/6ebf5560b2f9.jpg',
  'fuzz-jpeg/af00e8fbd571.jpg',
  'fuzz-jpeg/c123afc9a6a8.jpg',
  'fuzz-jpeg/e89ad0ccdcb0.jpg',
  // Too large for this test; a decoder would also reject their checksums.
  'fuzz-png/a859fa96a385.png',
  'fuzz-png/dad2af0d65c8.png',
]);

/** Files with damaged pixels in an intact container: pixel data is not read. */
const brokenPixels = new Set([
  'fuzz-png/4409064b5e6b.png',
  'fuzz-png/600a71cc33c9.png',
  'fuzz-png/c5481efa33e6.png',
  'hostile-corrupt/imagepng__x_interlaced_chck.png',
  'hostile-corrupt/imagepng__x_image-issue_1075.png',
  'hostile-corrupt/wuffs__pixel-data-none.gif',
  'hostile-corrupt/libavif__poc_b_506387278.avif',
]);

const noImages = /^(?:svg|hostile-svg|nonimage|other-image)\//;

/** Maximum size that is decoded; for larger files, only the header is compared. */
const maxDecodedPx = 30_000_000;

/** sharp's reading of a file, with our field names; `undefined` if it fails. */
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
      isPlain: first.depth === 'uchar' && first.icc === undefined,
      isDirty:
        first.hasProfile ||
        first.space === 'cmyk' ||
        (first.orientation ?? 1) !== 1 ||
        (first.exif ?? first.xmp ?? first.iptc ?? first.icc ?? first.comments) !== undefined,
    };
  } catch {
    return undefined;
  }
}

test('the corpus is present', () => {
  expect(names.length).toBeGreaterThan(300);
});

test.each(names)('reads the same header as sharp: %s', async (name) => {
  const bytes = corpusFile(name);
  const reading = bytes.length === 0 ? undefined : await readWithSharp(bytes);
  const verdict = verdictOn(bytes);
  if (name.startsWith('heic/')) {
    // sharp reads the header even of a file that it cannot decode.
    const { width: widthPx, height: heightPx } = await sharp(bytes).metadata();
    expect(verdict).toMatchObject({ format: 'heic', widthPx, heightPx, orientation: 1 });
    return;
  }
  if (reading === undefined || !/^(?:jpeg|png|webp|gif|avif)$/.test(reading.format ?? '')) {
    expect(typeof verdict === 'string' || brokenPixels.has(name)).toBe(true);
    if (noImages.test(name)) expect(verdict).toBe('unsupported');
    return;
  }
  if (stricterThanSharp.has(name)) {
    expect(verdict).toBe('corrupt');
    return;
  }
  const { isDirty, isPlain, frames, animation, ...still } = reading;
  const isApng =
    still.format === 'png' && bytes.subarray(0, bytes.indexOf('IDAT')).includes('acTL');
  // sharp reads only the default image of an APNG.
  const seen = isApng ? { format: 'apng' } : { frames, animation };
  // libnsgif ignores a screen with an edge above 2048 px.
  const size = name.endsWith('issue-117-out-of-range.gif') ? { heightPx: 23_850 } : {};
  expect(verdict).toMatchObject({ ...still, ...seen, ...size });
  if (isDirty) expect(verdict).toMatchObject({ isClean: false });
  if (!isPlain) expect(verdict).not.toMatchObject({ isPlain: true });
});

/** Lengths of truncated files that still have a header. */
const acceptedCuts = (bytes: Uint8Array): number[] =>
  [...bytes.keys()].filter((length) => typeof verdictOn(bytes.subarray(0, length)) === 'object');

const seeds = [
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
];

describe('a file truncated anywhere', () => {
  test.each(seeds)('%s has no header', (name) => {
    const bytes = corpusFile(name);
    expect(verdictOn(bytes)).toBeTypeOf('object');
    expect(acceptedCuts(bytes)).toEqual([]);
  });

  test('a GIF has a header at the end of a frame, since it needs no trailer', () => {
    const bytes = corpusFile('gif-animated/imagers__any-disposal.gif');
    const cuts = acceptedCuts(bytes);
    expect(cuts.map((length) => bytes[length - 1])).toEqual([0, 0, 0, 0, 0]);
    expect(cuts.at(-1)).toBe(bytes.length - 1);
  });
});

test('reads mutated files, or rejects them as unsupported or corrupt, without any other error', () => {
  const originals = [
    ...seeds,
    'png-orientation/derived__bricks-orientation6.png',
    'gif-animated/imagers__any-disposal.gif',
    'gif-animated/wuffs__multiple-loop-counts.gif',
    'gif-delays/imagegif__beacon_xmp.gif',
    'avif/libavif__color_grid_alpha_nogrid.avif',
  ].map(corpusFile);
  const magics = ['\xff\xd8', '\x89PNG\r\n\x1a\n', 'RIFF\x40\0\0\0WEBPVP8X', 'GIF89a'].concat(
    '\0\0\0\x10ftypavif\0\0\0\0\0\0\0\x80meta',
  );
  const noise = fc.uint8Array({ maxLength: 300 });
  const noisy = fc
    .tuple(fc.constantFrom(...magics), noise)
    .map(([magic, bytes]) => Buffer.concat([Buffer.from(magic, 'latin1'), bytes]));
  const byte = fc.oneof(fc.constantFrom(0, 1, 0x21, 0x2c, 0x3b, 0x7f, 0x80, 0xff), fc.nat(255));
  // Most structure is at the front, so half of the offsets are drawn from there.
  const place = fc.oneof(fc.nat(400), fc.nat(60_000));
  const edits = fc.array(fc.tuple(place, byte, fc.constantFrom('set', 'insert', 'cut')), {
    minLength: 1,
    maxLength: 6,
  });

  const file = fc.oneof(
    { arbitrary: fc.constantFrom(...originals), weight: 3 },
    { arbitrary: noisy, weight: 1 },
  );
  fc.assert(
    fc.property(file, edits, (seed, changes) => {
      let bytes = Buffer.from(seed);
      for (const [at, value, kind] of changes) {
        const offset = at % (bytes.length + 1);
        const [head, tail] = [bytes.subarray(0, offset), bytes.subarray(offset)];
        if (kind === 'set') tail.subarray(0, 1).fill(value);
        else if (kind === 'insert') bytes = Buffer.concat([head, Buffer.of(value), tail]);
        else bytes = Buffer.concat([head, tail.subarray(value)]);
      }
      const verdict = verdictOn(bytes);
      if (typeof verdict === 'string') return;
      const { widthPx, heightPx, frames, animation, animationError } = verdict;
      expect(Math.min(widthPx, heightPx, frames)).toBeGreaterThan(0);
      if (animationError === undefined) expect(animation?.delaysMs.length ?? 1).toBe(frames);
      else expect(animation).toBeUndefined();
    }),
    { numRuns: 6_000 },
  );
});
