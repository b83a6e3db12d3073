import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isNotModified, isRangeApplicable } from '../../../src/http/conditional.ts';

// How headers are read, the conversations of test/surface try; here is what no original of theirs has.

const weak = { etag: 'W/"abc"', lastModified: undefined };

it.each(['"abc"', 'W/"abc"'])(
  'a weak tag of ours is matched by %s, and never by If-Range',
  (tag) => {
    expect(isNotModified({ 'if-none-match': tag }, weak)).toBe(true);
    expect(isRangeApplicable(tag, weak)).toBe(false);
  },
);

describe('If-Range', () => {
  it('is met by a date to the second, but not within the second of the change', () => {
    const millisecond = fc.date({
      min: new Date('1970-01-01T00:00:00Z'),
      max: new Date('2099-12-31T23:59:59.999Z'),
      noInvalidDate: true,
    });
    const second = (date: Date): number => Math.floor(date.getTime() / 1000);
    const moments = fc.tuple(millisecond, fc.integer({ min: -1500, max: 1500 }), fc.nat(3000));
    const seen = [0, 0];
    fc.assert(
      fc.property(moments, ([lastModified, offMs, ageMs]) => {
        const sent = new Date(Math.max(0, lastModified.getTime() + offMs));
        const now = new Date(lastModified.getTime() + ageMs);
        const isMet = second(sent) === second(lastModified) && ageMs >= 1000;
        const validators = { etag: '"a"', lastModified };
        expect(isRangeApplicable(sent.toUTCString(), validators, now)).toBe(isMet);
        seen[Number(isMet)] = (seen[Number(isMet)] ?? 0) + 1;
      }),
      { numRuns: 2_000 },
    );
    expect(Math.min(...seen)).toBeGreaterThan(100);
  });
});
