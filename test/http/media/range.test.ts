import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatContentRange, parseRange } from '../../../src/http/media/range.ts';
import { rangeOf } from '../../surface/header-oracle.ts';

const HUGE = '9'.repeat(400);

/** What a header asks of a body, as `rangeOf` has it. */
function read(header: string | undefined, sizeBytes: number): string {
  const parsed = parseRange(header, sizeBytes);
  return parsed.kind === 'range' ? `${parsed.first}-${parsed.last}` : parsed.kind;
}

describe('a Range', () => {
  it.each([
    ['bytes=0-0', '0-0'],
    ['bytes=2-', '2-9'],
    ['BYTES=5-99', '5-9'],
    ['bytes=-5', '5-9'],
    [`bytes=-${HUGE}`, '0-9'],
    ['bytes=007-008', '7-8'],
    // Empty elements of a list count for nothing (RFC 9110 §5.6.1.2).
    ['bytes= , ,\t0-1', '0-1'],
    ['bytes=0-1 ,\t, ', '0-1'],
    ['bytes=10-', 'unsatisfiable'],
    ['bytes=-000', 'unsatisfiable'],
    [`bytes=${HUGE}-`, 'unsatisfiable'],
    ['bytes=9007199254740993-9007199254740992', 'full'],
    [undefined, 'full'],
    ['bytes=-', 'full'],
    ['bytes= 0-1', 'full'],
    ['bytes=0--1', 'full'],
    ['bytes=٠-١', 'full'],
    ['bytes=0-1,3-4', 'full'],
    ['bytes=0-1;q=1', 'full'],
    ['xbytes=0-1', 'full'],
  ])('%s of 10 bytes: %s', (header, expected) => {
    expect(read(header, 10)).toBe(expected);
  });

  it.each([
    ['bytes=0-', 'unsatisfiable'],
    ['bytes=-0', 'unsatisfiable'],
    ['bytes=-5', 'full'], // satisfiable by the letter, but no Content-Range can say so
  ])('%s of an empty body: %s', (header, expected) => {
    expect(read(header, 0)).toBe(expected);
  });

  it('is read as the grammar reads it', () => {
    const digits = fc.oneof(
      fc.nat(60).map(String),
      fc.constantFrom('', '0', '00', '007', HUGE, '9007199254740993', '1.5', '+1', '１'),
    );
    const comma = fc.constantFrom(',', ' ,', ', ', ',\t', ', ,', ' ', '', '\u00a0,');
    const unit = fc.constantFrom('bytes=', 'Bytes=', 'bytes =', 'items=');
    const header = fc.oneof(
      fc.tuple(digits, digits).map(([first, last]) => `bytes=${first}-${last}`),
      fc
        .tuple(unit, comma, digits, digits, comma)
        .map(([name, before, first, last, after]) => `${name}${before}${first}-${last}${after}`),
      fc
        .array(fc.tuple(digits, digits, comma), { maxLength: 3 })
        .map((parts) => `bytes=${parts.map(([a, b, c]) => `${a}-${b}${c}`).join('')}`),
      fc
        .string({ unit: fc.constantFrom(...'bytes=,- \t0199\u00a0') })
        .map((tail) => `bytes=${tail}`),
      fc.string({ unit: 'binary' }),
    );
    const sizeBytes = fc.oneof(fc.nat(50), fc.constantFrom(2 ** 31, Number.MAX_SAFE_INTEGER));
    const seen = { range: 0, unsatisfiable: 0, full: 0 };
    fc.assert(
      fc.property(header, sizeBytes, (text, size) => {
        expect(read(text, size)).toBe(rangeOf(text, size));
        seen[parseRange(text, size).kind] += 1;
      }),
      { numRuns: 10_000 },
    );
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(200);
  });
});

describe('Content-Range', () => {
  it('has the part of a 206, and the size for a 416', () => {
    expect(formatContentRange({ kind: 'range', first: 0, last: 4 }, 10)).toBe('bytes 0-4/10');
    expect(formatContentRange({ kind: 'unsatisfiable' }, 10)).toBe('bytes */10');
  });
});
