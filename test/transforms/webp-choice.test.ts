import { readFileSync } from 'node:fs';
import { describe } from 'vitest';
import { describeWebpChoice } from './webp-choice-run.ts';

const files = [
  'corpus/emoji-small/parrot__parrot.gif',
  'corpus/gif-animated/sharp__rotating-squares.gif',
  'corpus/png-gamma/wuffs__red-blue-gradient.gamma1dot8.png',
  'corpus/png-gamma/wuffs__checkerboard.gamma1dot0.png',
  'originals/emojis/5',
  'originals/icons/1/ab12',
];

describe('a WebP is never both larger and worse than the lossless one: of', () => {
  const named = files.map((name) => ({
    name,
    read: () => readFileSync(new URL(`../../fixtures/${name}`, import.meta.url)),
  }));
  describeWebpChoice(named, [22, 4096]);
});
