import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  dispositionOf,
  formatContentDisposition,
} from '../../../src/http/media/content-disposition.ts';
import { formatCacheStatus, formatServerTiming } from '../../../src/http/response-headers.ts';
import type { CacheOutcome, TimedStage } from '../../../src/pipeline/cache-outcome.ts';

const TOKEN = "!#$%&'*+-.^_`|~";
const isToken = (text: string): boolean =>
  text !== '' && [...text].every((c) => /[A-Za-z0-9]/.test(c) || TOKEN.includes(c));

/** A header value as RFC 9110 §5.6 takes it apart: what comes first, then its parameters in order. */
function takeApart(header: string): readonly [string, ReadonlyMap<string, string | undefined>] {
  let index = 0;
  const readUntil = (stops: string): string => {
    const start = index;
    while (index < header.length && !stops.includes(header.charAt(index))) index += 1;
    return header.slice(start, index);
  };
  const first = readUntil('; ');
  if (!isToken(first)) throw new Error(`${first} is no token`);
  const parameters = new Map<string, string | undefined>();
  while (index < header.length) {
    if (header.slice(index, index + 2) !== '; ') throw new Error(`no parameter at ${index}`);
    index += 2;
    const name = readUntil('=;');
    if (!isToken(name) || parameters.has(name)) throw new Error(`no name: ${name}`);
    let value: string | undefined;
    if (header[index] === '=') {
      index += 1;
      value = header[index] === '"' ? readQuoted() : readUntil(';');
    }
    parameters.set(name, value);
  }
  return [first, parameters];

  function readQuoted(): string {
    let text = '';
    for (index += 1; header[index] !== '"'; index += 1) {
      if (index >= header.length) throw new Error('a quote without end');
      if (header[index] === '\\') index += 1;
      text += header.charAt(index);
    }
    index += 1;
    return text;
  }
}

/** RFC 8187 §3.2.1, byte by byte; UTF-8 that is none is thrown at. */
function decodeExtValue(text: string): string {
  if (!text.startsWith("UTF-8''")) throw new Error(`no charset: ${text}`);
  const bytes: number[] = [];
  for (let index = 7; index < text.length; index += 1) {
    const character = text.charAt(index);
    if (character === '%') {
      const hex = text.slice(index + 1, index + 3);
      if (!/^[0-9A-F]{2}$/.test(hex)) throw new Error(`no escape: ${hex}`);
      bytes.push(Number.parseInt(hex, 16));
      index += 2;
    } else if (/[A-Za-z0-9!#$&+\-.^_`|~]/.test(character)) {
      bytes.push(character.charCodeAt(0));
    } else {
      throw new Error(`no attr-char: ${character}`);
    }
  }
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
}

const unit = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
  fc.constantFrom(...'\r\n\0\t\v\f"\\%;=?*\'()<>@,:/[]{}.~ 4e'),
  fc.constantFrom('\u0085', '\u2028', '\u2029', '\u202e', '\u2066', '\u200f', '\ufeff', '\u00a0'),
  fc.constantFrom(
    'é',
    'e\u0301',
    'ﬁ',
    '\u037e',
    '\u1fef',
    '≠',
    '＂',
    '＼',
    '猫',
    '🎉',
    'ſ',
    'K',
    '%41',
    '=?',
    '\r\n ',
  ),
);
const filenames = fc.oneof(
  fc.string({ unit }),
  fc.string({ unit, minLength: 100, maxLength: 300 }),
);

describe('Content-Disposition', () => {
  it('holds one name that is read back, and no other character than visible ASCII and spaces', () => {
    const disposition = fc.constantFrom('inline' as const, 'attachment' as const);
    fc.assert(
      fc.property(disposition, filenames, (kind, filename) => {
        const header = formatContentDisposition(kind, filename);
        expect(header).toMatch(/^[ -~]+$/);
        const [first, parameters] = takeApart(header);
        expect(first).toBe(kind);
        const names = [...parameters.keys()];
        expect([['filename'], ['filename', 'filename*']]).toContainEqual(names);

        const fallback = parameters.get('filename') ?? '';
        const extended = parameters.get('filename*');
        const dropped = (code: number): boolean =>
          code < 0x20 ||
          (code >= 0x7f && code < 0xa0) ||
          (code >= 0x202a && code <= 0x202e) ||
          (code >= 0x2066 && code <= 0x2069);
        const kept = Array.from(Buffer.from(filename).toString())
          .filter((character) => !dropped(character.codePointAt(0) ?? 0))
          .join('');
        const name = extended === undefined ? fallback : decodeExtValue(extended);
        expect(name).toBe(kept === '' ? 'download' : kept);
        // What old browsers decode in the plain name, although they must not.
        expect(fallback).not.toMatch(/%[0-9A-Fa-f]{2}|=\?/);
        // No sign with a meaning, of a path or a header, where there was none.
        const count = (text: string, sign: string): number => text.split(sign).length;
        for (const sign of '/\\"=%;:*?<>|`') {
          expect(count(fallback, sign), sign).toBeLessThanOrEqual(count(name, sign));
        }
      }),
      { numRuns: 3_000 },
    );
  });

  it('is inline for nothing that a browser could run', () => {
    const safe = /^(?:image\/(?!svg)|audio\/|video\/|text\/plain)/;
    const essence = fc.oneof(
      fc.constantFrom('text/html', 'image/svg+xml', 'text/xml', 'application/pdf', 'text/css'),
      fc.constantFrom('application/javascript', 'application/octet-stream', 'text/javascript', ''),
      fc.constantFrom('text/plain', 'image/png', 'video/mp4', 'audio/ogg', 'image/tiff'),
      fc
        .tuple(fc.constantFrom('text', 'application', 'image', 'model'), fc.string())
        .map((t) => t.join('/')),
      fc.string({ unit: 'binary' }),
    );
    const type = fc
      .tuple(
        essence,
        fc.constantFrom('', ';', '; charset=utf-8', ' ; a="b"', '; text/plain'),
        fc.boolean(),
      )
      .map(([text, parameters, isUpper]) => (isUpper ? text.toUpperCase() : text) + parameters);
    const active = fc.constantFrom('html', 'HTML', 'svg', 'js', 'xml', 'xhtml', 'htm', 'css');
    const tail = fc.constantFrom('', '.', ' ', '. .', '\u202e', '\0', '\r\n', '\u2066');
    fc.assert(
      fc.property(type, filenames, active, tail, (contentType, name, extension, end) => {
        const plain = contentType.split(';')[0]?.trim().toLowerCase() ?? '';
        if (!safe.test(plain)) expect(dispositionOf(contentType, name)).toBe('attachment');
        if (!plain.startsWith('text/plain')) return;
        expect(dispositionOf(contentType, `${name}.${extension}${end}`)).toBe('attachment');
      }),
      { numRuns: 5_000 },
    );
  });

  it.each([
    'a',
    '.',
    ' ',
    '. ',
    '.a',
    '\\',
    '"',
    '%41',
    '=?',
    'é',
    '\ud800',
    '🎉',
    '\0',
    '\u202e',
    '/',
  ])('of 128 KB of %j is made in no time', (text) => {
    for (const end of ['', 'x', '.html']) {
      const filename = text.repeat((128 * 1024) / text.length) + end;
      const started = performance.now();
      formatContentDisposition(dispositionOf('text/plain', filename), filename);
      expect(performance.now() - started).toBeLessThan(3_000);
    }
  });
});

const flag = fc.constantFrom(undefined, false, true);
const originStatus = fc.constantFrom(undefined, 200, 206, 304);
const outcome: fc.Arbitrary<CacheOutcome> = fc.oneof(
  fc.constant({ kind: 'hit' } as const),
  fc.record({
    kind: fc.constantFrom('miss', 'stale'),
    stored: flag,
    collapsed: flag,
    originStatus,
  }),
  fc.record({ kind: fc.constant('bypass'), collapsed: flag, originStatus }),
);

describe('Cache-Status', () => {
  it('is a list of one, of the form of RFC 9211, and tells all there is to tell', () => {
    fc.assert(
      fc.property(outcome, (told) => {
        const [cache, parameters] = takeApart(formatCacheStatus(told));
        expect(cache).toBe('darkroom');
        const isHit = told.kind === 'hit';
        expect(parameters.has('hit')).toBe(isHit);
        expect(parameters.get('fwd')).toBe(isHit ? undefined : told.kind);
        expect(parameters.has('stored')).toBe('stored' in told && told.stored === true);
        expect(parameters.has('collapsed')).toBe(!isHit && told.collapsed === true);
        const status = isHit ? undefined : told.originStatus;
        expect(parameters.get('fwd-status')).toBe(status === undefined ? undefined : `${status}`);
        // Booleans stand without a value (RFC 8941 §3.1.2).
        for (const name of ['hit', 'stored', 'collapsed']) {
          expect(parameters.get(name)).toBeUndefined();
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('Server-Timing', () => {
  it('names each stage with a plain decimal number, to the microsecond', () => {
    const timing = fc.record({
      stage: fc.constantFrom<TimedStage>('store', 'origin', 'queue', 'render'),
      durationMs: fc.oneof(fc.double(), fc.double({ min: 0, max: 1e6, noNaN: true })),
    });
    fc.assert(
      fc.property(fc.array(timing, { minLength: 1 }), (timings) => {
        const header = formatServerTiming(timings);
        const entries = (header ?? '').split(', ').map((entry) => entry.split(';dur='));
        expect(entries.map(([stage]) => stage)).toEqual(timings.map(({ stage }) => stage));
        entries.forEach(([, text = ''], index) => {
          expect(text).toMatch(/^(?:0|[1-9]\d*)(?:\.\d{1,3})?$/);
          const { durationMs = 0 } = timings[index] ?? {};
          if (durationMs >= 0 && durationMs <= 1e6) {
            expect(Math.abs(Number(text) - durationMs)).toBeLessThanOrEqual(0.000_51);
          }
        });
      }),
      { numRuns: 1_000 },
    );
  });
});
