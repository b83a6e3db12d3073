import { readFileSync } from 'node:fs';
import { describe } from 'vitest';
import { describeGifAlpha } from './gif-alpha-run.ts';

const files = [
  'corpus/emoji-small/parrot__parrot.gif',
  'corpus/gif-static/imagers__alpha_gif_a.gif',
  'corpus/png-alpha/codeccorpus__bgan6a08.png',
  'originals/emojis/9',
  'originals/icons/1/ab12',
];

describe('a low GIF is transparent, white and black where its original is: of', () => {
  describeGifAlpha(
    files.map((name) => ({
      name,
      read: () => readFileSync(new URL(`../../fixtures/${name}`, import.meta.url)),
    })),
  );
});
