/**
 * Every file of the corpus, hostile or not, in every way, through the real service with its default
 * limits; and each of its good responses once more, for a client that has it already.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type HostileRun, startHostileRun } from './hostile-run.ts';
import { everyWay, jpegLow } from './ways.ts';

const CORPUS = join(import.meta.dirname, '../../fixtures/corpus');

const files = readdirSync(CORPUS, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.includes('/'))
  .sort();
const categories = [...new Set(files.map((file) => file.split('/')[0] ?? ''))];

let run: HostileRun;
beforeAll(async () => {
  run = await startHostileRun('corpus');
});
afterAll(() => run.stop());

test('there is a corpus', () => {
  expect(files.length).toBeGreaterThan(440);
  expect(categories.filter((category) => /^(hostile|fuzz)-/.test(category)).length).toBe(9);
});

describe.each(categories)('%s', (category) => {
  test.each(files.filter((file) => file.startsWith(`${category}/`)))(
    '%s',
    async (file) => {
      const original = readFileSync(join(CORPUS, file));
      for (const way of [...everyWay, jpegLow]) {
        await run.shootAlone(file, way.name, original, way.target(run.nextId()));
      }
    },
    180_000,
  );

  afterAll(() => run.expectGoodImages());
});

test('the service is unharmed', () => {
  run.expectUnharmed();
});
