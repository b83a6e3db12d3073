import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatContentRange, parseRange } from '../../../src/http/media/range.ts';

const FULL = { kind: 'full' };
const UNSATISFIABLE = { kind: 'unsatisfiable' };
const HUGE = '9'.repeat(400);

function range(first: number, last: number) {
  return { kind: 'range', first, last };
}

describe('parseRange', () => {
  it.each([
    ['bytes=0-0', range(0, 0)],
    ['bytes=0-', range(0, 9)],
    ['bytes=2-5', range(2, 5)],
    ['bytes=9-', range(9, 9)],
    ['bytes=5-99', range(5, 9)],
    ['bytes=-5', range(5, 9)],
    ['bytes=-10', range(0, 9)],
    ['bytes=-99', range(0, 9)],
    ['BYTES=0-1', range(0, 1)],
    ['Bytes=0-1', range(0, 1)],
    ['bytes=007-008', range(7, 8)],
    [`bytes=0-${HUGE}`, range(0, 9)],
    [`bytes=-${HUGE}`, range(0, 9)],
  ])('serves %s of 10 bytes', (header, expected) => {
    expect(parseRange(header, 10)).toEqual(expected);
  });

  it.each(['bytes=0-1,', 'bytes=,0-1', 'bytes= , ,\t0-1', 'bytes=0-1 ,\t, '])(
    'ignores the empty list elements of %j, as RFC 9110 §5.6.1.2 demands',
    (header) => {
      expect(parseRange(header, 10)).toEqual(range(0, 1));
    },
  );

  it.each([
    'bytes=10-',
    'bytes=10-20',
    'bytes=-0',
    'bytes=-000',
    `bytes=${HUGE}-`,
    'bytes=9007199254740993-9007199254740993',
  ])('cannot satisfy %s of 10 bytes', (header) => {
    expect(parseRange(header, 10)).toEqual(UNSATISFIABLE);
  });

  it.each([
    undefined,
    '',
    'bytes',
    'bytes=',
    'bytes=-',
    'bytes=,',
    'bytes= 0-1',
    'bytes =0-1',
    'bytes=0 -1',
    'bytes=0- 1',
    'bytes=0-1x',
    'bytes=+0-1',
    'bytes=0--1',
    'bytes=--1',
    'bytes=-1.5',
    'bytes=0x0-0x1',
    'bytes=1e0-2',
    'bytes=٠-١',
    'bytes=5-2',
    'bytes=9007199254740993-9007199254740992',
    'bytes=0-1,3-4',
    'bytes=0-1, -1',
    'bytes=0-1 3-4',
    'bytes=0-1;q=1',
    'items=0-1',
    'xbytes=0-1',
    '0-1',
  ])('sends everything for %j', (header) => {
    expect(parseRange(header, 10)).toEqual(FULL);
  });

  it.each([
    ['bytes=0-', UNSATISFIABLE],
    ['bytes=0-0', UNSATISFIABLE],
    ['bytes=-0', UNSATISFIABLE],
    ['bytes=-5', FULL], // satisfiable by the letter, but no Content-Range can say so
  ])('answers %s of an empty body', (header, expected) => {
    expect(parseRange(header, 0)).toEqual(expected);
  });

  it('agrees with slicing, for every range of every body', () => {
    const position = fc.oneof(fc.nat(40), fc.constant(undefined));
    fc.assert(
      fc.property(position, position, fc.nat(30), (first, last, sizeBytes) => {
        const body = Array.from({ length: sizeBytes }, (_, index) => index);
        const parsed = parseRange(`bytes=${first ?? ''}-${last ?? ''}`, sizeBytes);
        const wanted =
          first === undefined
            ? body.slice(Math.max(0, sizeBytes - (last ?? 0)))
            : body.slice(first, last === undefined ? undefined : last + 1);
        if (parsed.kind === 'range') {
          expect(body.slice(parsed.first, parsed.last + 1)).toEqual(wanted);
          expect(wanted).not.toHaveLength(0);
        } else if (parsed.kind === 'unsatisfiable') {
          expect(wanted).toHaveLength(0);
        }
      }),
    );
  });

  it('never leaves the body, whatever the header', () => {
    const noise = fc.string({ unit: fc.constantFrom(...'bytes=,- \t0199') });
    fc.assert(
      fc.property(noise, fc.nat(), (tail, sizeBytes) => {
        const parsed = parseRange(`bytes=${tail}`, sizeBytes);
        if (parsed.kind !== 'range') return;
        expect(parsed.first).toBeGreaterThanOrEqual(0);
        expect(parsed.last).toBeGreaterThanOrEqual(parsed.first);
        expect(parsed.last).toBeLessThan(sizeBytes);
      }),
    );
  });

  it.each([' ', ',', ' ,', ',\t '])('reads 16 KB of %j in no time', (unit) => {
    const started = performance.now();
    expect(parseRange(`bytes=${unit.repeat(16_384)}x`, 10)).toEqual(FULL);
    expect(parseRange(`bytes=0-1${unit.repeat(16_384)}x`, 10)).toEqual(FULL);
    expect(performance.now() - started).toBeLessThan(1_000);
  });
});

describe('formatContentRange', () => {
  it('tells the part of a 206 and the size of a 416', () => {
    expect(formatContentRange({ kind: 'range', first: 0, last: 4 }, 10)).toBe('bytes 0-4/10');
    expect(formatContentRange({ kind: 'unsatisfiable' }, 10)).toBe('bytes */10');
  });
});
