import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createRateModel } from '../../../bench/scale/rates.ts';

/** The number that operators are told to begin with. */
const recommended = Number(
  /RATE_LIMIT_REQUESTS=(\d+)/.exec(readFileSync('docs/rates.md', 'utf8'))?.[1],
);

const model = createRateModel(7);

// Beside an idle machine, one on which each render takes three times what it is estimated to.
test.each([1, 3])(
  'with the rate that is recommended, people are never limited, and a scraper is (renders take %s times as long)',
  (slowness) => {
    const outcome = model({ requests: recommended, windowMs: 60_000, slowness });
    expect(outcome.people).toBe(1_000);
    // They ask for something.
    expect(outcome.mostUnits).toBeGreaterThan(100);
    expect(outcome.limitedPeople).toBe(0);
    expect(outcome.scraperLimitedAfterS).toBeLessThan(60);
    expect(outcome.scraperRefusedShare).toBeGreaterThan(0.8);
  },
);

test('the model tells a rate that is too low', () => {
  const outcome = model({ requests: recommended / 6, windowMs: 60_000, slowness: 1 });
  expect(outcome.limitedPeople).toBeGreaterThan(0);
});
