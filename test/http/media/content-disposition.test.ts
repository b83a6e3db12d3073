import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  dispositionOf,
  formatContentDisposition,
  inlineTypes,
} from '../../../src/http/media/content-disposition.ts';

describe('formatContentDisposition', () => {
  it.each([
    ['cat.png', 'filename="cat.png"'],
    ['my cat (1).png', 'filename="my cat (1).png"'],
    ['a;b,c=d.txt', 'filename="a;b,c=d.txt"'],
    ['say "hi".txt', 'filename="say \\"hi\\".txt"'],
    ['back\\slash.txt', 'filename="back\\\\slash.txt"'],
    ['100% sure.txt', 'filename="100% sure.txt"'],
    ['a%41.txt', `filename="a_41.txt"; filename*=UTF-8''a%2541.txt`],
    [
      '=?utf-8?Q?x?=.txt',
      `filename="=_utf-8?Q?x?=.txt"; filename*=UTF-8''%3D%3Futf-8%3FQ%3Fx%3F%3D.txt`,
    ],
    ['résumé.pdf', `filename="resume.pdf"; filename*=UTF-8''r%C3%A9sum%C3%A9.pdf`],
    ['re\u0301sume\u0301.pdf', `filename="resume.pdf"; filename*=UTF-8''re%CC%81sume%CC%81.pdf`],
    ['猫.png', `filename="_.png"; filename*=UTF-8''%E7%8C%AB.png`],
    [
      "😀's (1)*.png",
      `filename="_'s (1)*.png"; filename*=UTF-8''%F0%9F%98%80%27s%20%281%29%2A.png`,
    ],
    ['a／b≠c＂.txt', `filename="a_b_c_.txt"; filename*=UTF-8''a%EF%BC%8Fb%E2%89%A0c%EF%BC%82.txt`],
    ['\ud83d.png', `filename="_.png"; filename*=UTF-8''%EF%BF%BD.png`],
    ['a\r\nSet-Cookie: x=1\0\x7f\x85.txt', 'filename="aSet-Cookie: x=1.txt"'],
    ['photo\u202Egpj.exe', 'filename="photogpj.exe"'],
    ['\u202A\u202B\u202C\u202D\u202E\u2066\u2067\u2068\u2069a', 'filename="a"'],
    ['', 'filename="download"'],
    ['\u202E\n', 'filename="download"'],
  ])('names %j', (filename, expected) => {
    expect(formatContentDisposition('attachment', filename)).toBe(`attachment; ${expected}`);
    expect(formatContentDisposition('inline', filename)).toBe(`inline; ${expected}`);
  });

  // The grammar of RFC 6266 §4.1 as far as we use it: qdtext and quoted-pair, then attr-char and
  // pct-encoded (RFC 8187 §3.2.1). A header of this form can smuggle nothing.
  const GRAMMAR =
    /^attachment; filename="((?:[ !#-[\]-~]|\\["\\])+)"(?:; filename\*=UTF-8''((?:[\w!#$&+\-.^`|~]|%[\dA-F]{2})+))?$/;

  const anyUnit = fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit));
  const nastyUnit = fc.constantFrom(
    ...'\r\n\0\t"\\%;=?*\'4e1 \u202e\u2066é≠猫'.split(''),
    '\ud83d',
    '\ude00',
  );
  const filenames = fc.string({
    unit: fc.oneof(anyUnit, nastyUnit, fc.string({ unit: 'binary' })),
  });

  it('holds to the grammar and keeps the name, whatever the name', () => {
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
        expect(fallback).not.toMatch(/%[\dA-Fa-f]{2}|=\?/);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('dispositionOf', () => {
  it.each([
    'image/png',
    'image/apng',
    'image/jpeg',
    'image/gif',
    'image/webp',
    'image/avif',
    'image/bmp',
    'image/heic',
    'image/jxl',
    'audio/mpeg',
    'audio/ogg; codecs=opus',
    'video/mp4',
    'video/webm',
    'VIDEO/WebM',
    'text/plain',
    'text/plain; charset=utf-8',
    'text/plain;charset=utf-16le',
  ])('shows %s', (contentType) => {
    expect(dispositionOf(contentType, 'file')).toBe('inline');
  });

  it.each([
    'text/html',
    'text/html; charset=utf-8',
    'text/css',
    'text/javascript',
    'text/xml',
    'text/vcard',
    'image/svg+xml',
    'IMAGE/SVG+XML; charset=utf-8',
    'image/vnd.adobe.photoshop',
    'image/unheard-of',
    'image/*',
    'application/xml',
    'application/xhtml+xml',
    'application/javascript',
    'application/pdf',
    'application/x-shockwave-flash',
    'application/octet-stream',
    'audio',
    'constructor',
    '',
  ])('saves %j', (contentType) => {
    expect(dispositionOf(contentType, 'cat.png')).toBe('attachment');
  });

  it.each(
    [
      'html',
      'htm',
      'xhtml',
      'shtml',
      'svg',
      'svgz',
      'xml',
      'xsl',
      'xslt',
      'js',
      'mjs',
      'cjs',
    ].concat(['css', 'hta', 'mht', 'mhtml', 'vbs', 'php']),
  )('saves text by the name of x.%s', (extension) => {
    const text = 'text/plain; charset=utf-8';
    expect(dispositionOf(text, `x.${extension}`)).toBe('attachment');
    expect(dispositionOf(text, `x.txt.${extension.toUpperCase()}`)).toBe('attachment');
    expect(dispositionOf(text, `x.${extension}. . `)).toBe('attachment');
    expect(dispositionOf(text, `x.\u202E${extension}\u202C`)).toBe('attachment');
  });

  it.each(['notes.txt', 'README', 'data.json', 'page.html.txt', 'a.ts', 'html', '.js.md', ''])(
    'shows text by the name of %j',
    (filename) => {
      expect(dispositionOf('text/plain', filename)).toBe('inline');
    },
  );

  it('never lets a name make anything inline', () => {
    const types = fc.oneof(
      fc.string(),
      fc.constantFrom('text/html', 'image/svg+xml', 'application/pdf', ...Object.keys(inlineTypes)),
    );
    fc.assert(
      fc.property(types, fc.string(), (contentType, filename) => {
        const nameless = dispositionOf(contentType, '');
        expect(['attachment', nameless]).toContain(dispositionOf(contentType, filename));
      }),
    );
  });
});
