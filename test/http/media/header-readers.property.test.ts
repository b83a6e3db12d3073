import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatHttpDate, parseHttpDate } from '../../../src/http/http-date.ts';
import { isNotModified, isRangeApplicable } from '../../../src/http/media/conditional.ts';
import { formatContentRange, parseRange } from '../../../src/http/media/range.ts';
import { rangeOf, tagsOf, trimOws } from '../../surface/header-oracle.ts';

describe('parseRange', () => {
  const digits = fc.oneof(
    fc.nat(60).map(String),
    fc.constantFrom('', '0', '00', '007', '9'.repeat(400), '9007199254740993', '1.5', '+1', '１'),
  );
  const comma = fc.constantFrom(',', ' ,', ', ', ',\t', ', ,', ' ', '', '\u00a0,');
  const header = fc.oneof(
    fc.tuple(digits, digits).map(([first, last]) => `bytes=${first}-${last}`),
    fc
      .tuple(fc.constantFrom('bytes=', 'Bytes=', 'bytes =', 'items='), comma, digits, digits, comma)
      .map(([unit, before, first, last, after]) => `${unit}${before}${first}-${last}${after}`),
    fc
      .array(fc.tuple(digits, digits, comma), { maxLength: 3 })
      .map((parts) => `bytes=${parts.map(([a, b, c]) => `${a}-${b}${c}`).join('')}`),
    fc.string({ unit: fc.constantFrom(...'bytes=,- \t0199\u00a0') }).map((tail) => `bytes=${tail}`),
    fc.string({ unit: 'binary' }),
  );
  const sizeBytes = fc.oneof(fc.nat(50), fc.constantFrom(0, 1, 2 ** 31, Number.MAX_SAFE_INTEGER));

  it('reads what the grammar reads, and nothing else', () => {
    const seen: Record<string, number> = {};
    fc.assert(
      fc.property(header, sizeBytes, (text, size) => {
        const parsed = parseRange(text, size);
        const told = parsed.kind === 'range' ? `${parsed.first}-${parsed.last}` : parsed.kind;
        expect(told).toBe(rangeOf(text, size));
        seen[parsed.kind] = (seen[parsed.kind] ?? 0) + 1;
        if (parsed.kind === 'full') return;
        const shape = parsed.kind === 'range' ? /^bytes \d+-\d+\/\d+$/ : /^bytes \*\/\d+$/;
        expect(formatContentRange(parsed, size)).toMatch(shape);
      }),
      { numRuns: 10_000 },
    );
    expect(Math.min(seen.range ?? 0, seen.unsatisfiable ?? 0, seen.full ?? 0)).toBeGreaterThan(200);
  });
});

const opaque = fc.string({ unit: fc.constantFrom(...'ab,W/*\u00fc!#~\\'), maxLength: 4 });
const tag = fc
  .tuple(fc.constantFrom('', '', 'W/'), opaque)
  .map(([weak, text]) => `${weak}"${text}"`);
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

describe('If-None-Match', () => {
  it('matches exactly what the grammar matches', () => {
    const seen = { true: 0, false: 0 };
    fc.assert(
      fc.property(tagList, opaque, (ifNoneMatch, ours) => {
        const isAny = trimOws(ifNoneMatch) === '*';
        const expected = isAny || (tagsOf(ifNoneMatch)?.includes(ours) ?? false);
        const validators = { etag: `"${ours}"`, lastModified: undefined };
        expect(isNotModified({ ifNoneMatch }, validators)).toBe(expected);
        seen[`${expected}`] += 1;
      }),
      { numRuns: 10_000 },
    );
    expect(Math.min(seen.true, seen.false)).toBeGreaterThan(100);
  });

  it('is all that counts where it is there', () => {
    const dates = millisecond.map(formatHttpDate);
    fc.assert(
      fc.property(tagList, dates, millisecond, (ifNoneMatch, ifModifiedSince, lastModified) => {
        const validators = { etag: '"a"', lastModified };
        expect(isNotModified({ ifNoneMatch, ifModifiedSince }, validators)).toBe(
          isNotModified({ ifNoneMatch }, validators),
        );
      }),
    );
  });
});

describe('If-Range', () => {
  it('holds for our very tag alone, or for our date once it is strong', () => {
    const seen = { true: 0, false: 0 };
    const now = new Date('2100-01-01T00:00:00Z');
    const form = fc.constantFrom(
      '"@"',
      ' "@"\t',
      'W/"@"',
      '\u00a0"@"',
      '"@" "@"',
      '"@", "x"',
      '"@',
      '@',
    );
    const header = fc.tuple(fc.oneof(form, tagList), opaque);
    fc.assert(
      fc.property(header, millisecond, ([template, ours], lastModified) => {
        const ifRange = template.replaceAll('@', ours);
        const expected = trimOws(ifRange) === `"${ours}"`;
        const validators = { etag: `"${ours}"`, lastModified };
        expect(isRangeApplicable(ifRange, validators, now)).toBe(expected);
        seen[`${expected}`] += 1;
      }),
      { numRuns: 5_000 },
    );
    expect(Math.min(seen.true, seen.false)).toBeGreaterThan(100);
  });

  it('compares a date to the second, and not within the second of the change', () => {
    fc.assert(
      fc.property(
        millisecond,
        fc.integer({ min: -1500, max: 1500 }),
        fc.nat(3000),
        (lastModified, offMs, ageMs) => {
          const told = new Date(Math.max(0, lastModified.getTime() + offMs));
          const now = new Date(lastModified.getTime() + ageMs);
          const second = (date: Date): number => Math.floor(date.getTime() / 1000);
          const isSame = second(told) === second(lastModified);
          const validators = { etag: '"a"', lastModified };
          expect(isRangeApplicable(formatHttpDate(told), validators, now)).toBe(
            isSame && ageMs >= 1000,
          );
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

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

describe('HTTP dates', () => {
  const anyDate = fc.date({
    min: new Date('0000-01-01T00:00:00Z'),
    max: new Date('9999-12-31T23:59:59Z'),
    noInvalidDate: true,
  });
  const day = fc.constantFrom(...DAYS);

  it('are read in each of the three forms, whatever the day of the week', () => {
    fc.assert(
      fc.property(anyDate, day, (date, weekday) => {
        const seconds = Math.floor(date.getTime() / 1000);
        const [fixed, , asctime] = formsOf(date, weekday);
        expect(parseHttpDate(fixed)?.getTime()).toBe(seconds * 1000);
        expect(parseHttpDate(asctime)?.getTime()).toBe(seconds * 1000);
      }),
      { numRuns: 2_000 },
    );
  });

  it('of two digits are the latest year at most 50 years ahead', () => {
    const now = fc.date({
      min: new Date('1971-01-01T00:00:00Z'),
      max: new Date('2399-12-31T23:59:59Z'),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(now, fc.integer({ min: -49, max: 49 }), day, (today, years, weekday) => {
        const date = new Date(today);
        date.setUTCMilliseconds(0);
        date.setUTCFullYear(today.getUTCFullYear() + years);
        const [, short] = formsOf(date, weekday);
        expect(parseHttpDate(short, today)).toEqual(date);
      }),
      { numRuns: 2_000 },
    );
  });

  it('with one character wrong are no date, or the date that stands there', () => {
    const edit = fc.tuple(
      fc.nat(40),
      fc.constantFrom(...'0129: -,+.GMTZn\t\u00a0\u0661', '', '  '),
    );
    fc.assert(
      fc.property(anyDate, day, fc.nat(2), edit, (date, weekday, form, [at, piece]) => {
        const text = formsOf(date, weekday)[form] ?? '';
        const edited = text.slice(0, at) + piece + text.slice(at + 1);
        const now = new Date('2026-01-01T00:00:00Z');
        const parsed = parseHttpDate(edited, now);
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

  it('are read from no other text, which is never thrown at', () => {
    const piece = fc.constantFrom(
      ...[
        'Sun',
        'Sunday',
        ', ',
        ' ',
        '06',
        '-',
        'Nov',
        '1994',
        '94',
        '08:49:37',
        'GMT',
        ' 6',
        '\0',
      ],
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.array(piece).map((all) => all.join('')),
        ),
        (text) => {
          const parsed = parseHttpDate(text);
          expect(parsed === undefined || !Number.isNaN(parsed.getTime())).toBe(true);
        },
      ),
      { numRuns: 5_000 },
    );
  });
});

describe('128 KB of header', () => {
  const LENGTH = 128 * 1024;
  const units = [
    ...[' ', '\t', ',', ' ,', ', ', '"', '""', '"a"', '"a" ', '"a",', 'W/', 'W/"', 'W/"a", ', '*'],
    ...[
      '0',
      '9',
      '-',
      '0-',
      '0-1,',
      'bytes=',
      '=',
      'Sun, ',
      'Sun ',
      '06 ',
      ':',
      '\u00a0',
      '\u00ff',
    ],
  ];
  const validators = { etag: '"zz"', lastModified: new Date(0) };
  it.each([
    ['Range', 'bytes=', (text: string) => parseRange(text, 10)],
    ['Range', 'bytes=0-1', (text: string) => parseRange(text, 10)],
    ['If-None-Match', '', (text: string) => isNotModified({ ifNoneMatch: text }, validators)],
    ['If-None-Match', '"a"', (text: string) => isNotModified({ ifNoneMatch: text }, validators)],
    [
      'If-Modified-Since',
      '',
      (text: string) => isNotModified({ ifModifiedSince: text }, validators),
    ],
    ['If-Range', '', (text: string) => isRangeApplicable(text, validators)],
    ['If-Range', '"', (text: string) => isRangeApplicable(text, validators)],
  ])('of %s, beginning with %s, is read in no time', (_, head, read) => {
    for (const unit of units) {
      for (const tail of ['', 'x', '"', '-']) {
        const text = head + unit.repeat(Math.ceil(LENGTH / unit.length)) + tail;
        const started = performance.now();
        read(text);
        expect(performance.now() - started, JSON.stringify(unit)).toBeLessThan(3_000);
      }
    }
  });
});
