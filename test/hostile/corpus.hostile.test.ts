/** All requests for every file of the corpus, through the real service with default limits; revalidates each good response. */
import { afterAll, describe, expect, test } from 'vitest';
import { corpusCategories, corpusFile, corpusFiles } from '../formats/header-of.ts';
import { shareHostileRun } from './hostile-run.ts';
import { allTargets, jpegLow } from './targets.ts';

const run = shareHostileRun('corpus');

test('the corpus has nine hostile categories', () => {
  expect(corpusFiles(...corpusCategories).length).toBeGreaterThan(440);
  expect(corpusCategories.filter((category) => /^(hostile|fuzz)-/.test(category)).length).toBe(9);
});

describe.each(corpusCategories)('%s', (category) => {
  test.each(corpusFiles(category))(
    '%s',
    async (file) => {
      const original = corpusFile(file);
      for (const makeTarget of [...allTargets, jpegLow]) {
        await run().shoot(file, original, makeTarget(run().nextId()));
      }
    },
    180_000,
  );

  afterAll(() => run().expectGoodImages());
});
