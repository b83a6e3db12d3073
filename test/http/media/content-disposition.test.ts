import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  dispositionOf,
  formatContentDisposition,
  inlineTypes,
} from '../../../src/http/media/content-disposition.ts';

const TEXT = 'text/plain; charset=utf-8';

const anyCharacter = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
  fc.constantFrom(...'\r\n\0\t\v\f"\\%;=?*\'()<>@,:/[]{}.~ 4eé≠＂＼猫ſK'),
  fc.constantFrom(...'\u0085\u2028\u2029\u202e\u2066\u200f\ufeff\u00a0\u037e\u1fef'),
  fc.constantFrom('e\u0301', 'ﬁ', '🎉', '%41', '=?', '\r\n '),
);
const filenames = fc.oneof(
  fc.string({ unit: anyCharacter }),
  fc.string({ unit: anyCharacter, minLength: 100, maxLength: 300 }),
);

/**
 * The grammar of RFC 6266 §4.1 as far as we use it: qdtext and quoted-pair, then attr-char and pct-encoded
 * (RFC 8187 §3.2.1). A header of this form can smuggle nothing.
 */
const GRAMMAR =
  /^attachment; filename="((?:[ !#-[\]-~]|\\["\\])+)"(?:; filename\*=UTF-8''((?:[\w!#$&+\-.^`|~]|%[\dA-F]{2})+))?$/;

describe('the name of an attachment', () => {
  it.each([
    ['my cat (1).png', 'filename="my cat (1).png"'],
    ['a;b,c=d.txt', 'filename="a;b,c=d.txt"'],
    ['say "hi".txt', 'filename="say \\"hi\\".txt"'],
    ['back\\slash.txt', 'filename="back\\\\slash.txt"'],
    ['100% sure.txt', 'filename="100% sure.txt"'],
    ['a%41.txt', `filename="a_41.txt"; filename*=UTF-8''a%2541.txt`],
    ['=?x.txt', `filename="=_x.txt"; filename*=UTF-8''%3D%3Fx.txt`],
    ['résumé.pdf', `filename="resume.pdf"; filename*=UTF-8''r%C3%A9sum%C3%A9.pdf`],
    ['re\u0301.pdf', `filename="re.pdf"; filename*=UTF-8''re%CC%81.pdf`],
    ["😀's (1)*", `filename="_'s (1)*"; filename*=UTF-8''%F0%9F%98%80%27s%20%281%29%2A`],
    ['a／b≠c.txt', `filename="a_b_c.txt"; filename*=UTF-8''a%EF%BC%8Fb%E2%89%A0c.txt`],
    ['\ud83d.png', `filename="_.png"; filename*=UTF-8''%EF%BF%BD.png`],
    ['a\r\nSet-Cookie: x=1\0\x7f\x85.txt', 'filename="aSet-Cookie: x=1.txt"'],
    ['photo\u202Egpj.exe', 'filename="photogpj.exe"'],
    ['\u202A\u202B\u202C\u202D\u202E\u2066\u2067\u2068\u2069a', 'filename="a"'],
    ['\u202E\n', 'filename="download"'],
  ])('%j', (filename, expected) => {
    for (const disposition of ['attachment', 'inline'] as const) {
      const header = formatContentDisposition(disposition, filename);
      expect(header).toBe(`${disposition}; ${expected}`);
    }
  });

  it('is of the grammar and can be read back, whatever it is', () => {
    const count = (text: string, sign: string): number => text.split(sign).length;
    fc.assert(
      fc.property(filenames, (filename) => {
        const header = formatContentDisposition('attachment', filename);
        const [, quoted = '', encoded] = GRAMMAR.exec(header) ?? [];
        expect(quoted, header).not.toBe('');
        const fallback = quoted.replace(/\\(.)/g, '$1');
        const name = encoded === undefined ? fallback : decodeURIComponent(encoded);
        const wellFormed = Buffer.from(filename).toString(); // has the semantics of toWellFormed
        const expected = wellFormed.replace(/[\p{Cc}\u202A-\u202E\u2066-\u2069]/gu, '');
        expect(name).toBe(expected === '' ? 'download' : expected);
        // What old browsers decode in the plain name, although they must not.
        expect(fallback).not.toMatch(/%[\dA-Fa-f]{2}|=\?/);
        // No sign with a meaning, of a path or a header, where there was none.
        for (const sign of '/\\"=%;:*?<>|`') {
          expect(count(fallback, sign), sign).toBeLessThanOrEqual(count(name, sign));
        }
      }),
      { numRuns: 3_000 },
    );
  });
});

describe('the disposition of an attachment', () => {
  const shown = [
    ...['image/png', 'image/apng', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif'],
    ...['image/bmp', 'image/heic', 'image/jxl', 'audio/mpeg', 'audio/ogg; codecs=opus'],
    ...['video/mp4', 'VIDEO/WebM', 'text/plain', 'text/plain;charset=utf-16le'],
  ];
  const saved = [
    ...['text/html; charset=utf-8', 'text/css', 'text/javascript', 'text/xml', 'text/vcard'],
    ...['image/svg+xml', 'IMAGE/SVG+XML; charset=utf-8', 'image/unheard-of', 'image/*', 'audio'],
    ...['application/xml', 'application/pdf', 'application/octet-stream', 'constructor', ''],
  ];

  it.each([
    ...shown.map((type) => [type, 'inline'] as const),
    ...saved.map((type) => [type, 'attachment'] as const),
  ])('of type "%s" is %s', (type, expected) => {
    expect(dispositionOf(type, 'cat.png')).toBe(expected);
    if (!type.startsWith('text/')) expect(dispositionOf(type, 'page.html')).toBe(expected);
  });

  it.each([
    ...['html', 'htm', 'xhtml', 'shtml', 'svg', 'svgz', 'xml', 'xsl', 'xslt', 'js', 'mjs', 'cjs'],
    ...['css', 'hta', 'mht', 'mhtml', 'vbs', 'php'],
  ])('of text by the name of x.%s is to be saved', (extension) => {
    const names = [
      `txt.${extension.toUpperCase()}`,
      `${extension}. . `,
      `\u202E${extension}\u202C`,
    ];
    for (const name of names) expect(dispositionOf(TEXT, `x.${name}`)).toBe('attachment');
  });

  it.each(['notes.txt', 'README', 'page.html.txt', 'html', '.js.md', ''])(
    'of text by the name of %j is to be shown',
    (filename) => {
      expect(dispositionOf(TEXT, filename)).toBe('inline');
    },
  );

  it('is inline for nothing that a browser could run, and no name makes it so', () => {
    const types = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('text/html', 'image/svg+xml', 'application/pdf', ...Object.keys(inlineTypes)),
    );
    const parameters = fc.constantFrom('', ';', '; charset=utf-8', ' ; a="b"', '; text/plain');
    const active = fc.constantFrom('html', 'HTML', 'svg', 'js', 'xml', 'htm', 'css');
    const tail = fc.constantFrom('', '.', ' ', '. .', '\u202e', '\0', '\r\n', '\u2066');
    fc.assert(
      fc.property(
        types,
        parameters,
        filenames,
        active,
        tail,
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
});
