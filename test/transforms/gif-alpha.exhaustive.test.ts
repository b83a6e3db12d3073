import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe } from 'vitest';
import { readImageFacts } from '../../src/formats/read-image-facts.ts';
import { describeGifAlpha } from './gif-alpha-run.ts';

const FIXTURES = join(import.meta.dirname, '../../fixtures');
const MAX_BYTES = 300_000;

/** Longer than a WebP can be, which they are compared with. */
const TOO_LONG = /needle|tall/;

const names = ['originals', 'golden-originals', 'corpus'].flatMap((folder) =>
  readdirSync(join(FIXTURES, folder), { recursive: true, encoding: 'utf8' })
    .map((file) => join(folder, file))
    .filter(
      (name) => !/hostile|fuzz/.test(name) && !TOO_LONG.test(name) && isImage(join(FIXTURES, name)),
    )
    .sort(),
);

function isImage(file: string): boolean {
  const { size } = statSync(file);
  if (!statSync(file).isFile() || size > MAX_BYTES) return false;
  try {
    const facts = readImageFacts(readFileSync(file));
    return facts !== undefined && /gif|png|webp/.test(facts.format);
  } catch {
    return false;
  }
}

describe('a low GIF is transparent, white and black where its original is: of', () => {
  describeGifAlpha(names.map((name) => ({ name, read: () => readFileSync(join(FIXTURES, name)) })));
});
