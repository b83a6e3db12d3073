import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatServerTiming } from '../../../src/http/response-headers.ts';

describe('formatServerTiming', () => {
  it('tells each stage once, in the order given', () => {
    const timings = [
      { stage: 'store', durationMs: 0.1 },
      { stage: 'origin', durationMs: 12.34567 },
      { stage: 'queue', durationMs: 0 },
      { stage: 'render', durationMs: 250 },
    ] as const;
    expect(formatServerTiming(timings)).toBe(
      'store;dur=0.1, origin;dur=12.346, queue;dur=0, render;dur=250',
    );
  });

  it('has nothing to tell of no stage', () => {
    expect(formatServerTiming([])).toBeUndefined();
  });

  it.each([
    [1e-7, '0'],
    [0.0005, '0.001'],
    [-3, '0'],
    [-0, '0'],
    [Number.NaN, '0'],
    [Number.POSITIVE_INFINITY, '9007199254740991'],
  ])('writes %d ms as %s', (durationMs, expected) => {
    expect(formatServerTiming([{ stage: 'store', durationMs }])).toBe(`store;dur=${expected}`);
  });

  it('never needs an exponent', () => {
    fc.assert(
      fc.property(fc.double(), (durationMs) => {
        expect(formatServerTiming([{ stage: 'render', durationMs }])).toMatch(
          /^render;dur=\d+(\.\d{1,3})?$/,
        );
      }),
    );
  });
});
