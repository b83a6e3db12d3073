import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SNIFF_BYTES, sniffContentType } from '../../../src/pipeline/originals/content-sniff.ts';
import { atScale } from '../../support/test-scale.ts';

/** A valid value of a Content-Type header. */
const MEDIA_TYPE = /^[a-z]+\/[\w.+-]+(?:; (?:charset=utf-(?:8|16le|16be)|codecs=opus))?$/;

/** Signatures, in Latin-1, of formats whose structure file-type traverses. */
const WALKED_HEADS = [
  'PK\x03\x04',
  '\x1aE\xdf\xa3',
  'ID3\x03\0\0\0\0\0\x05',
  'OggS',
  'II*\0',
  'MM\0*',
  '!<arch>',
  '\x89PNG\r\n\x1a\n',
  '\0\0\0\x18ftyp',
  'RIFF\0\0\0\0',
  '\xff\xfb',
  '\xef\xbb\xbf\xef\xbb\xbf',
  '0&\xb2u\x8ef\xcf\x11\xa6\xd9\0\xaa\0b\xcel',
  '\0\0\0\x0cjP  \r\n\x87\n',
  '\x04\0\0\0',
  '<!--',
] as const;

const HTML = 'text/html; charset=utf-8';
const SVG = 'image/svg+xml';
const XML = 'application/xml';
const TEXT = 'text/plain; charset=utf-8';
const UNKNOWN = 'application/octet-stream';

function utf16(text: string, endian: 'le' | 'be'): Uint8Array {
  const bytes = Buffer.from(`\uFEFF${text}`, 'utf16le');
  return endian === 'le' ? bytes : bytes.swap16();
}

const latin1 = (text: string) => Buffer.from(text, 'latin1');

/** Two sync bytes, 188 apart, as in an MPEG transport stream. */
const stream = latin1(`<p>\0G${'\0'.repeat(191)}G`.padEnd(400, '\0'));

const texts: Readonly<Record<string, readonly (string | Uint8Array)[]>> = {
  [HTML]: [
    ...['<!DOCTYPE html><title>x</title>', '<!doctype HTML PUBLIC "-//W3C//DTD HTML 4.01//EN">'],
    ...['<!doctypehtml>', '<!DOCTYPE><html>', '<html>', '<HtMl lang=en>', '<head>'],
    ...['<body onload=alert(1)>', '<script>alert(1)</script>', '<script/src=x>'],
    ...['<iframe src=javascript:alert(1)>', '<img src=x onerror=alert(1)>', '<a href=x>', '<p>'],
    ...['<b>', '<table\n>', '<meta', ' \t\r\n\f<html>', '\uFEFF<html>'],
    ...['\uFEFF \n<!-- x --><html>', '<!-- a --><!-- b > -- -->\n<script>', '<!--><script>'],
    ...['<!--><script>x</script>--> y', '<!-- --!><b>x</b>--> y', '<!---><script>'],
    ...['<!-- x --!><script>', '<!-- never closed <b>', '<?php echo 1 ?>\n<html>'],
    '<!DOCTYPE html><svg xmlns="http://www.w3.org/2000/svg">',
    ...[latin1('<html>caf\xe9'), stream],
  ],
  'text/html; charset=utf-16le': [utf16('<html>', 'le')],
  'text/html; charset=utf-16be': [utf16('<!-- --><b>', 'be')],
  [SVG]: [
    ...['<svg>', '<SVG onload=alert(1)>', '<svg/onload=alert(1)>'],
    '<s:svg xmlns:s="http://www.w3.org/2000/svg"/>',
    ...['\uFEFF\n<svg xmlns="http://www.w3.org/2000/svg">', '<?xml version="1.0"?><svg>'],
    '<?xml version="1.0"?>\n<!-- <html> --><?xml-stylesheet href="x>"?>\n<svg>',
    '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "svg11.dtd">',
    ...['<!DOCTYPE svg:svg [ <!ENTITY x "]>"> ]>', '<!DOCTYPE x [ <!ENTITY a "<b>"> ] ><svg>'],
    '<?xml version="1.0"?><!DOCTYPE x SYSTEM "y"><!-- z --><svg>',
    ...[utf16('<?xml ?><svg>', 'le'), latin1('<svg>\0\x01\xff')],
  ],
  [XML]: [
    ...['<?xml version="1.0"?><feed/>', ' <?xml version="1.0"?>'],
    '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">',
    ...['<?xml version="1.0"?><!-- cut', '<!DOCTYPE plist PUBLIC "x" "y"><plist/>'],
    '<!DOCTYPE x [ <!ENTITY a "cut',
  ],
  // Regardless of the first signature.
  [TEXT]: [
    ...['see <html> and <script>', '<3 you', '<htmlx>', '<svgish>', '<note>not HTML</note>'],
    ...['<!-- todo -->\n# Notes', '<?php echo "x";', '{"a": "<script>"}', 'alert(1)'],
    '#!/bin/sh\necho hi',
    'The wide, wide sea', // `wide` at 4: QuickTime
    'Are free', // `free` at 4
    ...['BMW', 'MAC addresses', 'MZ', 'GIFs are fun', 'FORM 27b', 'solid state', 'II*'],
    'ID3 is a tag',
    `G${'x'.repeat(187)}G`, // MPEG transport stream
    ...['Größe, 猫, 😀', '\uFEFFwith a mark', '\u001b[31mred\u001b[0m\t\f\r\n', 'x'],
  ],
  'text/plain; charset=utf-16le': [utf16('Grüße 😀', 'le')],
  'text/plain; charset=utf-16be': [utf16('Grüße 😀', 'be')],
  [UNKNOWN]: [
    ...['', 'a\0b', 'a\x01b', 'a\x1ab', latin1('caf\xe9 ol\xe9'), utf16('a\0b', 'le')],
    Buffer.from('猫').subarray(0, 2), // cut at the end of the file
    Buffer.from([0x61, 0xed, 0xa0, 0x80]), // an encoded surrogate
    Buffer.from([0xfe, 0xff, 0xd8, 0x3d]), // half of a pair of surrogates
  ],
  'application/pdf': ['%PDF-1.7\n'],
  'application/postscript': ['%!PS-Adobe-3.0 EPSF-3.0'],
  'application/rtf': ['{\\rtf1 x}'],
  'image/gif': ['GIF89a<script>alert(1)</script>'],
  'text/vcard': ['BEGIN:VCARD\r\nVERSION:4.0'],
  'text/calendar': ['BEGIN:VCALENDAR\r\n'],
  'text/vtt': ['WEBVTT\n\n'],
};

it.each(Object.entries(texts))('detects %s by the first bytes', async (type, all) => {
  for (const text of all)
    expect(await sniffContentType(Buffer.from(text)), String(text)).toBe(type);
});

it.each([
  ['image/avif', 'avif', 'miaf'],
  ['image/avif', 'avis', 'avifmsf1'],
  ['image/avif', 'MA1B', 'mif1avif'],
  ['image/heic', 'heic', 'mif1'],
  ['image/heic', 'heim', ''],
  ['image/heic', 'mif2', 'mif1heic'],
  ['image/heic-sequence', 'hevc', 'heic'],
  ['image/heif', 'mif1', 'heic'],
  ['image/heif', 'miaf', 'mif1'],
  ['video/mp4', 'isom', 'mp41iso8'],
  ['video/mp4', 'isom', 'iso8\0\0\0\x08heic'],
  ['video/quicktime', 'qt  ', ''],
])(
  'returns %s for a file type box with major brand %s and brands %j',
  async (type, major, brands) => {
    const size = brands.includes('\0') ? 20 : 16 + brands.length;
    const file = latin1(`\0\0\0${String.fromCharCode(size)}ftyp${major}\0\0\0\0${brands}`);
    expect(await sniffContentType(file)).toBe(type);
  },
);

it('reads markup without backtracking', async () => {
  for (const unit of ['<!--', '<?', ' ', '<!-- -->', '<!doctype x [', '] ', '<!doctype x []']) {
    const text = unit.repeat(SNIFF_BYTES / unit.length);
    const started = performance.now();
    for (const whole of [text, `<!doctype x [${text}`]) await sniffContentType(Buffer.from(whole));
    expect(performance.now() - started, unit).toBeLessThan(1_000);
  }
});

it('accepts text that ends within a character at the end of a full prefix', async () => {
  for (const length of [1, 2, 3, 4]) {
    const long = Buffer.from('x'.repeat(SNIFF_BYTES - length) + '😀'.repeat(2));
    expect(await sniffContentType(long.subarray(0, SNIFF_BYTES))).toBe(TEXT);
    expect(await sniffContentType(long)).toBe(TEXT);
  }
  const odd = utf16('猫'.repeat(SNIFF_BYTES), 'le');
  expect(await sniffContentType(odd)).toBe('text/plain; charset=utf-16le');
});

it('returns a type for hostile bytes quickly', async () => {
  const head = fc.constantFrom('', ...WALKED_HEADS);
  await fc.assert(
    fc.asyncProperty(head, fc.uint8Array({ maxLength: SNIFF_BYTES }), async (text, junk) => {
      const started = performance.now();
      expect(await sniffContentType(Buffer.concat([latin1(text), junk]))).toMatch(MEDIA_TYPE);
      expect(performance.now() - started).toBeLessThan(1_000);
    }),
    { numRuns: atScale(200, 2_000) },
  );
});
