import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  dispositionOf,
  formatContentDisposition,
  inlineTypes,
} from '../../../src/http/content-disposition.ts';

const anyCharacter = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
  fc.constantFrom(...'\r\n\0\t\v\f"\\%;=?*\'()<>@,:/[]{}.~ 4eé≠＂＼猫ſK'),
  fc.constantFrom(...'\u0085\u2028\u2029\u202e\u2066\u200f\ufeff\u00a0\u037e\u1fef'),
  fc.constantFrom('e\u0301', 'ﬁ', '🎉', '%41', '=?', '\r\n '),
);
const filenames = fc.oneof(
  ...[0, 100].map((minLength) => fc.string({ unit: anyCharacter, minLength, maxLength: 300 })),
);

/**
 * The grammar of RFC 6266 §4.1 as used here: qdtext and quoted-pair, then attr-char and pct-encoded (RFC 8187 §3.2.1).
 * A header that matches it cannot inject anything.
 */
const GRAMMAR =
  /^attachment; filename="((?:[ !#-[\]-~]|\\["\\])+)"(?:; filename\*=UTF-8''((?:[\w!#$&+\-.^`|~]|%[\dA-F]{2})+))?$/;

const fallbacks: [name: string, fallback: string][] = [
  ['my cat; (1),=.png', 'my cat; (1),=.png'],
  ['say "hi"\\.txt', 'say "hi"\\.txt'],
  ['100% sure.txt', '100% sure.txt'],
  ['a%41=?.txt', 'a_41=_.txt'],
  ['résumé.pdf', 'resume.pdf'],
  ["😀's a／b≠c.txt", "_'s a_b_c.txt"],
  ['\ud83d.png', '_.png'],
  ['a\r\nSet-Cookie: x=1\0\x7f\x85.txt', 'aSet-Cookie: x=1.txt'],
  ['photo\u202Egpj.exe', 'photogpj.exe'],
  ['\u202A\u202B\u202C\u202D\u202E\u2066\u2067\u2068\u2069a', 'a'],
  ['\u202E\n', 'download'],
];

it('any name of an attachment can be decoded, and injects nothing', () => {
  const count = (text: string, sign: string): number => text.split(sign).length;
  fc.assert(
    fc.property(fc.tuple(filenames, fc.constant('')), ([filename, known]) => {
      const header = formatContentDisposition('attachment', filename);
      const [, quoted = '', encoded] = GRAMMAR.exec(header) ?? [];
      expect(quoted, header).not.toBe('');
      const fallback = quoted.replace(/\\(.)/g, '$1');
      expect(fallback).toBe(known || fallback);
      const name = encoded === undefined ? fallback : decodeURIComponent(encoded);
      const wellFormed = Buffer.from(filename).toString(); // same as toWellFormed()
      const expected = wellFormed.replace(/[\p{Cc}\u202A-\u202E\u2066-\u2069]/gu, '');
      expect(name).toBe(expected === '' ? 'download' : expected);
      // Escapes that old browsers decode in the plain name, although they must not.
      expect(fallback).not.toMatch(/%[\dA-Fa-f]{2}|=\?/);
      // Decoding adds no special character of paths or headers.
      for (const sign of '/\\"=%;:*?<>|`') {
        expect(count(fallback, sign), sign).toBeLessThanOrEqual(count(name, sign));
      }
    }),
    { numRuns: 3_000, examples: fallbacks.map((row) => [row]) },
  );
});

const active = 'html htm xhtml shtml svg svgz xml xsl xslt js mjs cjs css hta mht mhtml vbs php';

it.each(
  Object.entries({
    inline: [
      ...['image/png', 'image/apng', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif'],
      ...['image/bmp', 'image/heic', 'image/jxl', 'audio/mpeg', 'audio/ogg; codecs=opus'],
      ...['video/mp4', 'VIDEO/WebM', 'text/plain', 'text/plain;charset=utf-16le'],
    ],
    attachment: [
      ...['text/html; charset=utf-8', 'text/css', 'text/javascript', 'text/xml', 'text/vcard'],
      ...[
        'image/svg+xml',
        'IMAGE/SVG+XML; charset=utf-8',
        'image/ignoredChunks-of',
        'image/*',
        'audio',
      ],
      ...['application/xml', 'application/pdf', 'application/octet-stream', 'constructor', ''],
    ],
  }),
)('media are %s under a neutral name', (disposition, types) => {
  expect(types.filter((type) => dispositionOf(type, 'cat.png') !== disposition)).toEqual([]);
});

it('media are inline only if browsers cannot execute their type, regardless of the name', () => {
  for (const name of ['notes.txt', 'README', 'page.html.txt', 'html', '.js.md', '']) {
    expect(dispositionOf('text/plain; charset=utf-8', name)).toBe('inline');
  }
  const types = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('text/html', 'image/svg+xml', 'application/pdf', ...Object.keys(inlineTypes)),
  );
  const parameters = fc.constantFrom('', ';', '; charset=utf-8', ' ; a="b"', '; text/plain');
  const extensions = fc.constantFrom(...active.split(' '), ...active.toUpperCase().split(' '));
  const tail = fc.constantFrom('', '.', ' ', '. .', '\u202e', '\0', '\r\n', '\u2066');
  fc.assert(
    fc.property(
      ...([types, parameters, filenames, extensions, tail] as const),
      (type, rest, name, extension, end) => {
        const contentType = type + rest;
        expect(['attachment', dispositionOf(contentType, '')]).toContain(
          dispositionOf(contentType, name),
        );
        const plain = contentType.split(';')[0]?.trim().toLowerCase() ?? '';
        const isSafe = /^(?:image\/(?!svg)|audio\/|video\/|text\/plain)/.test(plain);
        if (isSafe && plain !== 'text/plain') return;
        expect(dispositionOf(contentType, `${name}.${extension}${end}`)).toBe('attachment');
      },
    ),
    { numRuns: 3_000 },
  );
});
