import { join } from '../../formats/containers.ts';
import { samples } from '../../support/test-app.ts';
import * as targets from '../targets.ts';
import { type Bomb, bombs, forEach, LARGEST_BYTES, MEBIBYTE } from './bomb.ts';
import { largestTables } from './largest-tables.ts';

/** First bytes of supported formats. */
const magics = {
  jpeg: join(0xff, 0xd8, 0xff, 0xe0),
  png: join('\x89PNG\r\n\x1a\n'),
  webp: join('RIFF\x24\0\0\0WEBPVP8 '),
  gif: join('GIF89a'),
  avif: join('\0\0\0\x1cftypavif\0\0\0\0'),
} as const;

const SVG =
  '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="9999" height="9999"/>';
const PAGE = '<!doctype html><script>alert(1)</script>';

/** First bytes of formats that libvips or ImageMagick decode, but Darkroom must not; the corpus has more. */
const foreign = {
  svg: SVG,
  html: PAGE,
  'gzipped svg': '\x1f\x8b\x08\0\0\0\0\0\0\x03',
  bigtiff: 'MM\0+\0\x08\0\0\0\0\0\0\0\0\0\x10',
  psd: '8BPS\0\x01\0\0\0\0\0\0\0\x03\0\x01\0\0\0\x01\0\0\0\x08\0\x03',
  jp2: '\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypjp2 ',
  heic: '\0\0\0\x18ftypheic\0\0\0\0mif1heic',
  postscript: '%!PS-Adobe-3.0 EPSF-3.0\n(id) run',
  mvg: 'push graphic-context\nviewbox 0 0 640 480\nimage over 0,0 0,0 "https://127.0.0.1/"\n',
  ppm: 'P6\n65535 65535\n255\n',
  pfm: 'PF\n65535 65535\n-1.0\n',
  radiance: '#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 65535 +X 65535\n',
  openexr: 'v/1\x01\x02\0\0\0channels\0chlist\0',
  fits: 'SIMPLE  =                    T / conforms to FITS standard',
  matlab: 'MATLAB 5.0 MAT-file, Platform: GLNXA64',
  analyze: '\x5c\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0',
  nifti: 'n+1\0\0\0\0\0\0\0\0\0\0\0\0\0',
  vips: '\xb6\xa6\xf2\x08\xff\xff\0\0\xff\xff\0\0\x03\0\0\0',
  csv: '1,2,3\n4,5,6\n7,8,9\n',
  openslide: 'II*\0Aperio Image Library',
  ultrahdr: '\xff\xd9\xff\xd8',
  zeros: '',
} as const;

const many = [targets.stillSmall, targets.animatedLossless, targets.passthrough, targets.cropped];
const big = [targets.stillSmall, targets.passthrough];
const good = ['jpeg', 'png', 'webp', 'animatedGif'] as const;

/** Files that are not images, or are too short. */
export const otherBombs: readonly Bomb[] = [
  ...bombs('refused without a render', many, {
    ...forEach(
      Object.entries(foreign),
      ([name]) => name,
      ([, text]) => join(text, Buffer.alloc(200)),
    ),
    'an empty file': () => Buffer.alloc(0),
  }),
  ...bombs('refused without a render', big, {
    '200 MB of zeros': () => Buffer.alloc(200 * MEBIBYTE),
  }),
  ...Object.entries(magics).flatMap(([name, magic]) => [
    ...bombs('refused', many, {
      [`an svg that begins like a ${name}`]: () => join(magic, SVG),
    }),
    ...bombs('refused', big, {
      [`49.9 MiB of zeros that begin like a ${name}`]: () =>
        join(magic, Buffer.alloc(LARGEST_BYTES)),
    }),
    ...bombs('refused without a render', big, {
      [`50 MiB and a byte that begin like a ${name}`]: () =>
        join(magic, Buffer.alloc(50 * MEBIBYTE + 1 - magic.length)),
    }),
  ]),
  ...bombs('served', targets.allTargets, {
    ...forEach(
      good,
      (name) => `${name} with HTML appended`,
      (name) => join(samples[name], PAGE),
    ),
  }),
  ...bombs('any', [targets.stillSmall, targets.passthrough], largestTables),
  ...bombs('any', targets.allTargets, {
    ...forEach(
      good,
      (name) => `${name} with 30 MB appended`,
      (name) => join(samples[name], Buffer.alloc(30 * MEBIBYTE, PAGE)),
    ),
  }),
];
