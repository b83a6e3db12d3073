import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatHttpDate, parseHttpDate } from '../../src/http/http-date.ts';

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
const two = (value: number): string => String(value).padStart(2, '0');

/** The three forms of RFC 9110 §5.6.7, from the same numbers. */
function formsOf(date: Date, day: string): readonly [string, string, string] {
  const [dayOfMonth, year] = [date.getUTCDate(), date.getUTCFullYear()];
  const month = MONTHS[date.getUTCMonth()] ?? '';
  const time = [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()].map(two).join(':');
  const fullYear = String(year).padStart(4, '0');
  return [
    `${day.slice(0, 3)}, ${two(dayOfMonth)} ${month} ${fullYear} ${time} GMT`,
    `${day}, ${two(dayOfMonth)}-${month}-${fullYear.slice(2)} ${time} GMT`,
    `${day.slice(0, 3)} ${month} ${String(dayOfMonth).padStart(2)} ${time} ${fullYear}`,
  ];
}

const datesOf = (min: string, max: string) =>
  fc.date({ min: new Date(min), max: new Date(max), noInvalidDate: true });
const anyDate = datesOf('0000-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z');
const day = fc.constantFrom(...DAYS);

describe('an HTTP date', () => {
  it.each([
    ['Sun, 06 Nov 1994 08:49:37 GMT', '1994-11-06T08:49:37Z'],
    ['Sunday, 06-Nov-94 08:49:37 GMT', '1994-11-06T08:49:37Z'],
    ['Sun Nov  6 08:49:37 1994', '1994-11-06T08:49:37Z'],
    ['Sat, 31 Dec 2016 23:59:60 GMT', '2017-01-01T00:00:00Z'],
    ['Thu, 29 Feb 2024 00:00:00 GMT', '2024-02-29T00:00:00Z'],
    ['Sat, 01 Jan 0050 00:00:00 GMT', '0050-01-01T00:00:00Z'],
  ])('is read: %s', (text, expected) => {
    expect(parseHttpDate(text)).toEqual(new Date(expected));
  });

  it.each([
    '',
    '1994-11-06T08:49:37Z',
    'Sun, 06 Nov 1994 08:49:37',
    'Sun, 06 Nov 1994 08:49:37 +0000',
    'Sun, 6 Nov 1994 08:49:37 GMT',
    'sun, 06 nov 1994 08:49:37 gmt',
    'Sun, 00 Nov 1994 08:49:37 GMT',
    'Wed, 29 Feb 2023 00:00:00 GMT',
    'Sun, 06 Nov 1994 24:00:00 GMT',
    'Sun, 06 Nov 1994 08:60:00 GMT',
    'Sun, 06 Nov 1994 08:49:61 GMT',
    'Sunday, 06-Nov-1994 08:49:37 GMT',
    'Sun Nov 6 08:49:37 1994',
  ])('is not read from %j', (text) => {
    expect(parseHttpDate(text)).toBeUndefined();
  });

  it.each([
    ['Monday, 15-Jun-76 12:00:00 GMT', '2026-06-15T12:00:00Z', 2076],
    ['Monday, 15-Jun-76 12:00:01 GMT', '2026-06-15T12:00:00Z', 1976],
    ['Tuesday, 29-Feb-00 12:00:00 GMT', '2026-06-15T12:00:00Z', 2000],
    ['Friday, 01-Jan-10 00:00:00 GMT', '2080-01-01T00:00:00Z', 2110],
  ])('of two digits is at most 50 years ahead: %s, read at %s', (text, now, year) => {
    expect(parseHttpDate(text, new Date(now))?.getUTCFullYear()).toBe(year);
  });

  it('is read in each form, whatever the day of the week, and written in the first', () => {
    fc.assert(
      fc.property(anyDate, day, (date, weekday) => {
        const ms = Math.floor(date.getTime() / 1000) * 1000;
        const [fixed, , asctime] = formsOf(date, weekday);
        expect(parseHttpDate(fixed)?.getTime()).toBe(ms);
        expect(parseHttpDate(asctime)?.getTime()).toBe(ms);
        expect(formsOf(date, DAYS[date.getUTCDay()] ?? '')[0]).toBe(formatHttpDate(date));
      }),
      { numRuns: 2_000 },
    );
  });

  it('of two digits is the latest year there can be', () => {
    const now = datesOf('1971-01-01T00:00:00Z', '2399-12-31T23:59:59Z');
    fc.assert(
      fc.property(now, fc.integer({ min: -49, max: 49 }), day, (today, years, weekday) => {
        const date = new Date(today);
        date.setUTCMilliseconds(0);
        date.setUTCFullYear(today.getUTCFullYear() + years);
        expect(parseHttpDate(formsOf(date, weekday)[1], today)).toEqual(date);
      }),
      { numRuns: 2_000 },
    );
  });

  it('with one character wrong is none, or the date that it says', () => {
    const piece = fc.constantFrom(...'0129: -,+.GMTZn\t\u00a0\u0661', '', '  ');
    fc.assert(
      fc.property(anyDate, day, fc.nat(2), fc.nat(40), piece, (date, weekday, form, at, wrong) => {
        const text = formsOf(date, weekday)[form] ?? '';
        const edited = text.slice(0, at) + wrong + text.slice(at + 1);
        const parsed = parseHttpDate(edited, new Date('2026-01-01T00:00:00Z'));
        if (parsed === undefined) return;
        expect(Number.isNaN(parsed.getTime())).toBe(false);
        // What was read can be written again, but for a leap second and the day of the week.
        const forms = DAYS.flatMap((each) => [...formsOf(parsed, each)]);
        const zeroed = edited.replace(/^(\w{3} \w{3}) 0/, '$1  ');
        const isLeapSecond = edited.includes(':60 ');
        expect(isLeapSecond || forms.includes(edited) || forms.includes(zeroed), edited).toBe(true);
      }),
      { numRuns: 10_000 },
    );
  });

  it.each(['', '+010000-01-01', '-000001-12-31'])('is not written of %j', (text) => {
    expect(() => formatHttpDate(new Date(text))).toThrow(RangeError);
  });
});
