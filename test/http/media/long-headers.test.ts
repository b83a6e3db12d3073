import { expect, it } from 'vitest';
import { isNotModified, isRangeApplicable } from '../../../src/http/conditional.ts';
import { dispositionOf, formatContentDisposition } from '../../../src/http/content-disposition.ts';
import { parseRange } from '../../../src/http/range.ts';

const LENGTH = 128 * 1024;
const UNITS = [
  ...[' ', '\t', ',', ' ,', ', ', '"', '""', '"a"', '"a" ', '"a",', 'W/', 'W/"', 'W/"a", ', '*'],
  ...['0', '9', '-', '0-', '0-1,', 'bytes=', '=', 'Sun, ', 'Sun ', '06 ', ':', '\u00a0', '\u00ff'],
];
const LETTERS = [...'a. \\"é🎉\0/', '. ', '.a', '%41', '=?', '\ud800', '\u202e'];
const validators = { etag: '"zz"', lastModified: new Date(0) };

it.each<[string, string, readonly string[], (text: string) => unknown]>([
  ['Range', 'bytes=', UNITS, (text) => parseRange(text, 10)],
  ['Range', 'bytes=0-1', UNITS, (text) => parseRange(text, 10)],
  ['If-None-Match', '', UNITS, (text) => isNotModified({ 'if-none-match': text }, validators)],
  ['If-None-Match', '"a"', UNITS, (text) => isNotModified({ 'if-none-match': text }, validators)],
  [
    'If-Modified-Since',
    '',
    UNITS,
    (text) => isNotModified({ 'if-modified-since': text }, validators),
  ],
  ['If-Range', '', UNITS, (text) => isRangeApplicable(text, validators)],
  ['If-Range', '"', UNITS, (text) => isRangeApplicable(text, validators)],
  [
    'file name',
    '',
    LETTERS,
    (text) => formatContentDisposition(dispositionOf('text/plain', text), text),
  ],
])('128 KB of %s, beginning with %j, take no time', (_, head, units, read) => {
  for (const unit of units) {
    for (const tail of ['', 'x', '"', '-', '.html']) {
      const text = head + unit.repeat(Math.ceil(LENGTH / unit.length)) + tail;
      const startedMs = performance.now();
      read(text);
      expect(performance.now() - startedMs, JSON.stringify(unit)).toBeLessThan(3_000);
    }
  }
});
