import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatHttpDate, parseHttpDate } from '../../src/http/http-date.ts';

const EXAMPLE = new Date('1994-11-06T08:49:37Z');

describe('parseHttpDate', () => {
  it.each([
    'Sun, 06 Nov 1994 08:49:37 GMT',
    'Sunday, 06-Nov-94 08:49:37 GMT',
    'Sun Nov  6 08:49:37 1994',
  ])('reads the example of RFC 9110 §5.6.7: %s', (text) => {
    expect(parseHttpDate(text)).toEqual(EXAMPLE);
  });

  it.each([
    '',
    '0',
    'yesterday',
    '1994-11-06T08:49:37Z',
    'Sun, 06 Nov 1994 08:49:37',
    'Sun, 06 Nov 1994 08:49:37 UTC',
    'Sun, 06 Nov 1994 08:49:37 +0000',
    'Sun, 6 Nov 1994 08:49:37 GMT',
    'Sun, 06 Nov 94 08:49:37 GMT',
    'Sun,  06 Nov 1994 08:49:37 GMT',
    ' Sun, 06 Nov 1994 08:49:37 GMT',
    'sun, 06 nov 1994 08:49:37 gmt',
    'Sonn, 06 Nov 1994 08:49:37 GMT',
    'Sun, 06 Mov 1994 08:49:37 GMT',
    'Sun, 00 Nov 1994 08:49:37 GMT',
    'Sun, 31 Nov 1994 08:49:37 GMT',
    'Wed, 29 Feb 2023 00:00:00 GMT',
    'Sun, 06 Nov 1994 24:00:00 GMT',
    'Sun, 06 Nov 1994 08:60:00 GMT',
    'Sun, 06 Nov 1994 08:49:61 GMT',
    'Sun, 06-Nov-94 08:49:37 GMT',
    'Sunday, 06-Nov-1994 08:49:37 GMT',
    'Sun Nov 6 08:49:37 1994',
    'Sun Nov  6 08:49:37 1994 GMT',
  ])('does not read %j', (text) => {
    expect(parseHttpDate(text)).toBeUndefined();
  });

  it('takes a leap second, a leap day and the first centuries', () => {
    expect(parseHttpDate('Sat, 31 Dec 2016 23:59:60 GMT')).toEqual(new Date('2017-01-01'));
    expect(parseHttpDate('Thu, 29 Feb 2024 00:00:00 GMT')).toEqual(new Date('2024-02-29'));
    expect(parseHttpDate('Sat, 01 Jan 0050 00:00:00 GMT')).toEqual(
      new Date('0050-01-01T00:00:00Z'),
    );
  });

  it('reads two digits as the latest year at most 50 years ahead', () => {
    const now = new Date('2026-06-15T12:00:00Z');
    const yearOf = (text: string) => parseHttpDate(text, now)?.getUTCFullYear();
    expect(yearOf('Monday, 15-Jun-76 12:00:00 GMT')).toBe(2076);
    expect(yearOf('Monday, 15-Jun-76 12:00:01 GMT')).toBe(1976);
    expect(yearOf('Monday, 15-Jun-77 12:00:00 GMT')).toBe(1977);
    expect(yearOf('Monday, 15-Jun-99 12:00:00 GMT')).toBe(1999);
    expect(yearOf('Tuesday, 29-Feb-00 12:00:00 GMT')).toBe(2000);
    const later = new Date('2080-01-01T00:00:00Z');
    expect(parseHttpDate('Friday, 01-Jan-10 00:00:00 GMT', later)?.getUTCFullYear()).toBe(2110);
    expect(parseHttpDate('Friday, 01-Jan-94 00:00:00 GMT', later)?.getUTCFullYear()).toBe(2094);
  });
});

describe('formatHttpDate', () => {
  it('writes the preferred form, without the milliseconds', () => {
    expect(formatHttpDate(new Date(EXAMPLE.getTime() + 999))).toBe('Sun, 06 Nov 1994 08:49:37 GMT');
  });

  it('is read back, to the second', () => {
    const dates = fc.date({
      min: new Date('0000-01-01T00:00:00Z'),
      max: new Date('9999-12-31T23:59:59.999Z'),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(dates, (date) => {
        const seconds = Math.floor(date.getTime() / 1000);
        expect(parseHttpDate(formatHttpDate(date))?.getTime()).toBe(seconds * 1000);
      }),
    );
  });

  it.each([new Date(Number.NaN), new Date('+010000-01-01'), new Date('-000001-12-31')])(
    'refuses a date the form cannot hold: %s',
    (date) => {
      expect(() => formatHttpDate(date)).toThrow(RangeError);
    },
  );
});
