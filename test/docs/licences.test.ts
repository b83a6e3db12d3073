import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { readFixtureTable } from '../support/fixture-table.ts';

/** Index of each directory of images below `fixtures`; goldens have the licence of their originals. */
const lists: Readonly<Record<string, string>> = {
  avifenc: 'avifenc/index.tsv',
  corpus: 'corpus/MANIFEST.tsv',
  expected: 'goldens.tsv',
  'flat-avif': 'flat-avif/index.tsv',
  gif: 'gif/index.tsv',
  'golden-originals': 'golden-originals/index.tsv',
  heic: 'heic/index.tsv',
  originals: 'originals-index.tsv',
  'sample-colours': 'sample-colours/index.tsv',
  video: 'video/index.tsv',
  'video-colours': 'video-colours/index.tsv',
  'video-fields': 'video-fields/index.tsv',
};

test('every directory of images has an index', () => {
  const directories = readdirSync('fixtures', { withFileTypes: true })
    .flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
    .filter((name) => name !== 'tls');
  expect(directories.sort()).toEqual(Object.keys(lists));
});

test.each(Object.entries(lists))('every image of fixtures/%s has a licence', (directory, list) => {
  const lines = readFixtureTable(list);
  if (directory === 'expected') {
    const origins = new Set(lines.map(({ original = '' }) => original.split('/')[0]));
    expect(Object.keys(lists)).toEqual(expect.arrayContaining([...origins]));
    return;
  }
  const below = join('fixtures', directory);
  const files = readdirSync(below, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(below, join(entry.parentPath, entry.name)))
    .filter((file) => join(directory, file) !== list);
  expect(lines.map(({ file, key }) => file ?? key).sort()).toEqual(files.sort());
  expect(lines.filter(({ licence = '' }) => licence === '')).toEqual([]);
});
