import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe } from 'vitest';
import { describeWebpChoice } from './webp-choice-run.ts';

const FIXTURES = join(import.meta.dirname, '../../fixtures');
const MAX_BYTES = 60_000;

/** Of others, `lossless` at their own size is the original, which may have been lossy before. */
const names = ['corpus', 'golden-originals', 'originals/emojis', 'originals/stickers']
  .flatMap((folder) =>
    readdirSync(join(FIXTURES, folder), { recursive: true, encoding: 'utf8' }).map((file) =>
      join(folder, file),
    ),
  )
  .filter((name) => {
    const file = statSync(join(FIXTURES, name));
    return file.isFile() && file.size <= MAX_BYTES && !/hostile|fuzz|webp|attachment/.test(name);
  })
  .sort();

describe('a WebP is never both larger and worse than the lossless one: of', () => {
  const named = names.map((name) => ({ name, read: () => readFileSync(join(FIXTURES, name)) }));
  describeWebpChoice(named, [16, 22, 48, 64, 128, 4096]);
});
