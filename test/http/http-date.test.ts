import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseHttpDate } from '../../src/http/conditional.ts';

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
const NOW = '2026-06-15T12:00:00Z';

test.each([
  ['Sat, 31 Dec 2016 23:59:60 GMT', '2017-01-01T00:00:00Z', NOW],
  ['Sat, 01 Jan 0050 00:00:00 GMT', '0050-01-01T00:00:00Z', NOW],
  // Of two digits, at most 50 years ahead.
  ['Monday, 15-Jun-76 12:00:00 GMT', '2076-06-15T12:00:00Z', NOW],
  ['Monday, 15-Jun-76 12:00:01 GMT', '1976-06-15T12:00:01Z', NOW],
  ['Tuesday, 29-Feb-00 12:00:00 GMT', '2000-02-29T12:00:00Z', NOW],
  ['Friday, 01-Jan-10 00:00:00 GMT', '2110-01-01T00:00:00Z', '2080-01-01T00:00:00Z'],
])('%s is %s, read at %s', (text, expected, now) => {
  expect(parseHttpDate(text, new Date(now))).toEqual(new Date(expected));
});

test('a date is read in each form, whatever the day of the week', () => {
  const now = datesOf('1971-01-01T00:00:00Z', '2399-12-31T23:59:59Z');
  const years = fc.integer({ min: -49, max: 49 });
  fc.assert(
    fc.property(anyDate, day, now, years, (date, weekday, today, off) => {
      date.setUTCMilliseconds(0);
      const [fixed, , asctime] = formsOf(date, weekday);
      expect([parseHttpDate(fixed), parseHttpDate(asctime)]).toEqual([date, date]);
      const near = new Date(today);
      near.setUTCMilliseconds(0);
      near.setUTCFullYear(today.getUTCFullYear() + off);
      expect(parseHttpDate(formsOf(near, weekday)[1], today)).toEqual(near);
    }),
    { numRuns: 2_000 },
  );
});

const wrong = [
  ...['', '1994-11-06T08:49:37Z', 'Sun, 6 Nov 1994 08:49:37 GMT', 'Sun Nov 6 08:49:37 1994'],
  ...['Sun, 00 Nov 1994 08:49:37 GMT', 'Wed, 29 Feb 2023 00:00:00 GMT'],
  ...['Sun, 06 Nov 1994 24:00:00 GMT', 'Sun, 06 Nov 1994 08:60:00 GMT'],
  ...['Sun, 06 Nov 1994 08:49:61 GMT', 'Sunday, 06-Nov-1994 08:49:37 GMT'],
];

test('with one character wrong it is none, or the date that it says', () => {
  expect(wrong.filter((text) => parseHttpDate(text) !== undefined)).toEqual([]);
  const piece = fc.constantFrom(...'0129: -,+.GMTZn\t\u00a0\u0661', '', '  ');
  fc.assert(
    fc.property(anyDate, day, fc.nat(2), fc.nat(40), piece, (date, weekday, form, at, edit) => {
      const text = formsOf(date, weekday)[form] ?? '';
      const edited = text.slice(0, at) + edit + text.slice(at + 1);
      const parsed = parseHttpDate(edited, new Date(NOW));
      if (parsed === undefined) return;
      // What was read can be written again, but for a leap second and the day of the week.
      const forms = DAYS.flatMap((each) => [...formsOf(parsed, each)]);
      const zeroed = edited.replace(/^(\w{3} \w{3}) 0/, '$1  ');
      const isLeapSecond = edited.includes(':60 ');
      expect(isLeapSecond || forms.includes(edited) || forms.includes(zeroed), edited).toBe(true);
    }),
    { numRuns: 10_000 },
  );
});
