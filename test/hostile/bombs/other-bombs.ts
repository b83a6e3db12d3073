import { join } from '../../formats/containers.ts';
import { samples } from '../../support/test-app.ts';
import * as ways from '../ways.ts';
import { type Bomb, bombs, forEach, LARGEST_BYTES, MEBIBYTE } from './bomb.ts';

/** First bytes of what is decoded here. */
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

const many = [ways.stillSmall, ways.animatedLossless, ways.passthrough, ways.cropped];
const big = [ways.stillSmall, ways.passthrough];
const good = ['jpeg', 'png', 'webp', 'animatedGif'] as const;

/** What is no image, or hardly one. */
export const otherBombs: readonly Bomb[] = [
  ...bombs('refused unseen', many, {
    'an empty file': () => Buffer.alloc(0),
  }),
  ...bombs('refused unseen', big, { '200 MB of zeros': () => Buffer.alloc(200 * MEBIBYTE) }),
  ...Object.entries(magics).flatMap(([name, magic]) => [
    ...bombs('refused', many, {
      [`an svg that begins like a ${name}`]: () => join(magic, SVG),
    }),
    ...bombs('refused', big, {
      [`49.9 MiB of zeros that begin like a ${name}`]: () =>
        join(magic, Buffer.alloc(LARGEST_BYTES)),
    }),
    ...bombs('refused unseen', big, {
      [`50 MiB and a byte that begin like a ${name}`]: () =>
        join(magic, Buffer.alloc(50 * MEBIBYTE + 1 - magic.length)),
    }),
  ]),
  ...bombs('served', ways.everyWay, {
    ...forEach(
      good,
      (name) => `${name} and a page`,
      (name) => join(samples[name], PAGE),
    ),
  }),
  ...bombs('any', ways.everyWay, {
    ...forEach(
      good,
      (name) => `${name} and 30 MB`,
      (name) => join(samples[name], Buffer.alloc(30 * MEBIBYTE, PAGE)),
    ),
  }),
];
