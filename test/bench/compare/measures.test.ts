import { expect, test } from 'vitest';
import { compare, summarize } from '../../../bench/compare/measures.ts';

test('turns come to their median, and to how far they are apart', () => {
  const turns = [{ perSecond: 110 }, { perSecond: 100 }, { perSecond: 90 }];
  expect(summarize(turns, 'perSecond')).toEqual({ value: 100, spread: 0.2 });
});

test('what was not measured is not zero', () => {
  expect(summarize([{ perSecond: 1 }], 'peakBytes')).toBeUndefined();
  expect(compare([{ perSecond: 1 }], [{}], 'perSecond')).toBeUndefined();
});

test('a ratio is of medians, and reaches from its worst round to its best', () => {
  const turns = [{ perSecond: 20 }, { perSecond: 30 }, { perSecond: 40 }];
  const others = [{ perSecond: 20 }, { perSecond: 10 }, { perSecond: 20 }];
  expect(compare(turns, others, 'perSecond')).toEqual({ value: 1.5, least: 1, most: 3 });
});

test('where less is better, half is twice as good', () => {
  const ratio = compare([{ cpuMsEach: 5 }], [{ cpuMsEach: 10 }], 'cpuMsEach');
  expect(ratio).toEqual({ value: 2, least: 2, most: 2 });
});
