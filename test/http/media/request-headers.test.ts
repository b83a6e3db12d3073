import { expect, it } from 'vitest';
import { isNotModified, isRangeApplicable } from '../../../src/http/conditional.ts';
import { dispositionOf, formatContentDisposition } from '../../../src/http/content-disposition.ts';
import { parseRange } from '../../../src/http/range.ts';

// The conversations of test/surface check other values of headers.

const LENGTH = 128 * 1024;
const UNITS = [
  ...[' ', '\t', ',', ' ,', ', ', '"', '""', '"a"', '"a" ', '"a",', 'W/', 'W/"', 'W/"a", ', '*'],
  ...['0', '9', '-', '0-', '0-1,', 'bytes=', '=', 'Sun, ', 'Sun ', '06 ', ':', '\u00a0', '\u00ff'],
];
const LETTERS = [...'a. \\"é🎉\0/', '. ', '.a', '%41', '=?', '\ud800', '\u202e'];
const state = { etag: '"zz"', lastModified: new Date(0) };
const readName = (text: string) =>
  formatContentDisposition(dispositionOf('text/plain', text), text);

it.each<[string, string, (text: string) => unknown, units?: readonly string[]]>([
  ['Range', 'bytes=', (text) => parseRange(text, 10)],
  ['Range', 'bytes=0-1', (text) => parseRange(text, 10)],
  ['If-None-Match', '', (text) => isNotModified({ 'if-none-match': text }, state)],
  ['If-None-Match', '"a"', (text) => isNotModified({ 'if-none-match': text }, state)],
  ['If-Modified-Since', '', (text) => isNotModified({ 'if-modified-since': text }, state)],
  ['If-Range', '', (text) => isRangeApplicable(text, state)],
  ['If-Range', '"', (text) => isRangeApplicable(text, state)],
  ['file name', '', readName, LETTERS],
])('128 KB of %s, beginning with %j, take linear time', (_, head, read, units = UNITS) => {
  for (const unit of units) {
    for (const tail of ['', 'x', '"', '-', '.html']) {
      const text = head + unit.repeat(Math.ceil(LENGTH / unit.length)) + tail;
      const startedMs = performance.now();
      read(text);
      expect(performance.now() - startedMs, JSON.stringify(unit)).toBeLessThan(3_000);
    }
  }
});

it.each([
  [0, 1_000, true],
  [0, 999, false],
  [-999, 1_000, true],
  [-1_000, 1_000, false],
  [1, 2_000, false],
])(
  'If-Range matches a date to the second, but not within the second of the change: %i ms off, %i ms after it',
  (offMs, ageMs, isMet) => {
    const lastModified = new Date('2024-05-14T10:00:00.999Z');
    const sent = new Date(lastModified.getTime() + offMs).toUTCString();
    const now = new Date(lastModified.getTime() + ageMs);
    expect(isRangeApplicable(sent, { etag: '"a"', lastModified }, now)).toBe(isMet);
  },
);
