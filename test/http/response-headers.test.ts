import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatCacheStatus, formatServerTiming } from '../../src/http/response-headers.ts';
import type { CacheOutcome } from '../../src/pipeline/cache-outcome.ts';

describe('Cache-Status', () => {
  it.each<[CacheOutcome, string]>([
    [{ kind: 'hit' }, 'hit'],
    [{ kind: 'hit', detail: 'store' }, 'hit; detail=store'],
    [{ kind: 'miss' }, 'fwd=miss'],
    [{ kind: 'miss', stored: false, collapsed: false }, 'fwd=miss'],
    [{ kind: 'miss', stored: true, collapsed: true }, 'fwd=miss; stored; collapsed'],
    [{ kind: 'miss', collapsed: true }, 'fwd=miss; collapsed'],
    [{ kind: 'stale', originStatus: 304 }, 'fwd=stale; fwd-status=304'],
    [{ kind: 'stale', originStatus: 200, stored: true }, 'fwd=stale; fwd-status=200; stored'],
    [{ kind: 'stale', detail: 'stale-if-error' }, 'fwd=stale; detail=stale-if-error'],
    [{ kind: 'bypass' }, 'fwd=bypass'],
    [
      { kind: 'bypass', originStatus: 206, collapsed: true },
      'fwd=bypass; fwd-status=206; collapsed',
    ],
  ])('of %j', (outcome, expected) => {
    expect(formatCacheStatus(outcome)).toBe(`darkroom; ${expected}`);
  });
});

describe('Server-Timing', () => {
  it('has each stage once, in the order given, to the microsecond', () => {
    const timings = [
      { stage: 'store', durationMs: 0.1 },
      { stage: 'origin', durationMs: 12.34567 },
      { stage: 'queue', durationMs: 0 },
      { stage: 'render', durationMs: 250 },
    ] as const;
    expect(formatServerTiming(timings)).toBe(
      'store;dur=0.1, origin;dur=12.346, queue;dur=0, render;dur=250',
    );
    expect(formatServerTiming([])).toBeUndefined();
  });

  it.each([
    [1e-7, '0'],
    [0.0005, '0.001'],
    [-3, '0'],
    [-0, '0'],
    [Number.NaN, '0'],
    [Number.POSITIVE_INFINITY, '9007199254740991'],
  ])('has %d ms as %s', (durationMs, expected) => {
    expect(formatServerTiming([{ stage: 'store', durationMs }])).toBe(`store;dur=${expected}`);
  });

  it('has plain decimal numbers alone, near what was measured', () => {
    const any = fc.oneof(fc.double(), fc.double({ min: 0, max: 1e6, noNaN: true }));
    fc.assert(
      fc.property(any, (durationMs) => {
        const header = formatServerTiming([{ stage: 'render', durationMs }]) ?? '';
        const [, text] = /^render;dur=((?:0|[1-9]\d*)(?:\.\d{1,3})?)$/.exec(header) ?? [];
        expect(text, header).toBeDefined();
        if (!(durationMs >= 0 && durationMs <= 1e6)) return;
        expect(Math.abs(Number(text) - durationMs)).toBeLessThanOrEqual(0.000_51);
      }),
      { numRuns: 1_000 },
    );
  });
});
