import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatHttpDate } from '../../../src/http/http-date.ts';
import { isNotModified, isRangeApplicable } from '../../../src/http/media/conditional.ts';
import { tagsOf, trimOws } from '../../surface/header-oracle.ts';

const BEFORE = 'Tue, 14 May 2024 09:59:59 GMT';
const SAME = 'Tue, 14 May 2024 10:00:00 GMT';
const AFTER = 'Tue, 14 May 2024 10:00:01 GMT';
const validators = { etag: '"abc"', lastModified: new Date('2024-05-14T10:00:00.789Z') };
const weak = { etag: 'W/"abc"', lastModified: undefined };

const opaque = fc.string({ unit: fc.constantFrom(...'ab,W/*\u00fc!#~\\'), maxLength: 4 });
const tag = fc
  .tuple(fc.constantFrom('', '', 'W/'), opaque)
  .map(([mark, text]) => `${mark}"${text}"`);
const gap = fc.constantFrom(',', ', ', ' , ', ',,', '\t,\t ', ' ', '', ';', '\u00a0,', '\u3000');
const tagList = fc.oneof(
  tag,
  fc.array(fc.tuple(tag, gap)).map((parts) => parts.flat().join('')),
  fc.constantFrom(
    '*',
    ' *',
    '*\t',
    '\u00a0*',
    '*\u00a0',
    '\ufeff*',
    '**',
    '"*"',
    '*,"a"',
    'W/*',
    '',
  ),
  fc.string({ unit: fc.constantFrom(...'"W/,* \tab\u00a0\u2028') }),
);
const millisecond = fc.date({
  min: new Date('1970-01-01T00:00:00Z'),
  max: new Date('2099-12-31T23:59:59.999Z'),
  noInvalidDate: true,
});

/** Holds a reader against the oracle's, for texts of which enough are true, and enough are false. */
function expectAgreement<Input>(
  input: fc.Arbitrary<Input>,
  judge: (input: Input) => readonly [actual: boolean, expected: boolean],
): void {
  const seen = { true: 0, false: 0 };
  fc.assert(
    fc.property(input, (each) => {
      const [actual, expected] = judge(each);
      expect(actual).toBe(expected);
      seen[`${expected}`] += 1;
    }),
    { numRuns: 10_000 },
  );
  expect(Math.min(seen.true, seen.false)).toBeGreaterThan(100);
}

describe('If-None-Match', () => {
  it.each([
    ['"abc"', true],
    ['W/"abc"', true],
    [' * ', true],
    ['"a,b", "abc"', true],
    [', ,"abc",,', true],
    ['"\u00fc", "abc"', true],
    ['"ABC"', false],
    ['abc', false],
    ['w/"abc"', false],
    ['*, "abc"', false],
    ['"abc" "x"', false],
    ['"abc", x', false],
    ['"a bc", "abc"', false],
    ['', false],
  ])('%s: %s', (list, expected) => {
    const conditions = { 'if-none-match': list };
    expect(isNotModified(conditions, validators)).toBe(expected);
    // Where it is there, the date counts for nothing.
    for (const date of [BEFORE, AFTER]) {
      expect(isNotModified({ ...conditions, 'if-modified-since': date }, validators)).toBe(
        expected,
      );
    }
  });

  it('is compared weakly: our own tag may be weak as well', () => {
    for (const list of ['"abc"', 'W/"abc"']) {
      expect(isNotModified({ 'if-none-match': list }, weak)).toBe(true);
    }
  });

  it('matches exactly what the grammar matches', () => {
    expectAgreement(fc.tuple(tagList, opaque), ([list, ours]) => [
      isNotModified({ 'if-none-match': list }, { etag: `"${ours}"`, lastModified: undefined }),
      trimOws(list) === '*' || (tagsOf(list)?.includes(ours) ?? false),
    ]);
  });
});

describe('If-Modified-Since', () => {
  it.each([
    [undefined, false],
    [BEFORE, false],
    [SAME, true], // our milliseconds never reached the client
    [AFTER, true],
    ['Tuesday, 14-May-24 10:00:00 GMT', true],
    ['Tue May 14 09:59:59 2024', false],
    ['2024-05-14T10:00:00Z', false],
  ])('%s: %s', (since, expected) => {
    const conditions = { 'if-modified-since': since };
    expect(isNotModified(conditions, validators)).toBe(expected);
    expect(isNotModified(conditions, { ...validators, lastModified: undefined })).toBe(false);
  });
});

describe('If-Range', () => {
  it.each([
    [undefined, true],
    [' "abc" ', true],
    [SAME, true],
    ['Tue May 14 10:00:00 2024', true],
    ['*', false],
    ['"x"', false],
    ['W/"abc"', false],
    ['"abc", "x"', false],
    [BEFORE, false],
    [AFTER, false],
    ['', false],
  ])('%s: %s', (ifRange, expected) => {
    expect(isRangeApplicable(ifRange, validators)).toBe(expected);
  });

  it.each(['W/"abc"', '"abc"', SAME])('is never met by a weak tag: %s', (ifRange) => {
    expect(isRangeApplicable(ifRange, weak)).toBe(false);
  });

  it('is met by our very tag alone', () => {
    const now = new Date('2100-01-01T00:00:00Z');
    const form = fc.constantFrom(
      '"@"',
      ' "@"\t',
      'W/"@"',
      '\u00a0"@"',
      '"@" "@"',
      '"@"x',
      '"@',
      '@',
    );
    const header = fc.tuple(fc.oneof(form, tagList), opaque, millisecond);
    expectAgreement(header, ([template, ours, lastModified]) => {
      const ifRange = template.replaceAll('@', ours);
      return [
        isRangeApplicable(ifRange, { etag: `"${ours}"`, lastModified }, now),
        trimOws(ifRange) === `"${ours}"`,
      ];
    });
  });

  it('is met by a date to the second, but not within the second of the change', () => {
    const second = (date: Date): number => Math.floor(date.getTime() / 1000);
    const moments = fc.tuple(millisecond, fc.integer({ min: -1500, max: 1500 }), fc.nat(3000));
    expectAgreement(moments, ([lastModified, offMs, ageMs]) => {
      const sent = new Date(Math.max(0, lastModified.getTime() + offMs));
      const now = new Date(lastModified.getTime() + ageMs);
      return [
        isRangeApplicable(formatHttpDate(sent), { etag: '"a"', lastModified }, now),
        second(sent) === second(lastModified) && ageMs >= 1000,
      ];
    });
  });
});
