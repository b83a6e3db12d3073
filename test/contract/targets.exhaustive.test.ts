import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatPath, parsePath } from '../../src/contract/media-path.ts';
import { isKnownPath } from '../../src/contract/media-request.ts';
import { type Canonical, canonicalOf, judge, type Verdict } from '../surface/contract-oracle.ts';
import {
  broken,
  drawn,
  foreign,
  hostile,
  neighbours,
  spellings,
} from '../surface/contract-requests.ts';
import { keyOf, verdictOf } from './service-verdict.ts';

/** Reads a result key back, by its form alone: nothing of a request may be missing in it. */
function readKey(key: string): Omit<Canonical, 'passthrough'> {
  const [path = '', query = '', ...rest] = key.split('?');
  expect(rest).toEqual([]);
  const pairs = query.split('&').map((pair) => pair.split('='));
  expect(pairs.map(([name]) => name)).toEqual(['width', 'height', 'format', 'quality', 'animated']);
  const [width, height, format, quality, animated] = pairs.map(([, value]) => value ?? '');
  const numberOf = (text = ''): number | undefined => (text === '' ? undefined : Number(text));
  return {
    originKey: path.split('/').map(decodeURIComponent).join('/'),
    widthPx: numberOf(width),
    heightPx: numberOf(height),
    format: (format === '' ? undefined : format) as Canonical['format'],
    quality: quality as Canonical['quality'],
    animated: animated === 'true',
  };
}

/** The one thing that must hold of a key, whatever was asked: it names an object below the root. */
function expectSafeKey(originKey: string): void {
  for (const segment of originKey.split('/')) expect(segment).not.toMatch(/^\.{0,2}$/);
  expect(originKey).not.toMatch(/[\\\p{Cc}\p{Surrogate}]/u);
  expect(Buffer.byteLength(originKey)).toBeLessThanOrEqual(1024); // what S3 takes
}

describe('a valid request', () => {
  it('of any row, in any spelling, is the canonical request of the contract, and its key tells all of it', () => {
    const spelled = drawn.chain((request) => fc.tuple(fc.constant(request), spellings(request)));
    fc.assert(
      fc.property(spelled, ([request, target]) => {
        const { row, values } = request;
        const expected: Verdict =
          row.query === 'none'
            ? { kind: 'default avatar', index: values.index ?? '' }
            : {
                kind: 'media',
                canonical: canonicalOf(request),
                ...(values.filename !== undefined && { filename: values.filename }),
              };
        expect(verdictOf(target)).toEqual(expected);
        expect(judge(target)).toEqual(expected); // the oracle's own parser is held to it as well
        expect(isKnownPath(target)).toBe(true);
        if (expected.kind !== 'media') return;
        const { passthrough: _, ...told } = expected.canonical;
        expectSafeKey(told.originKey);
        expect(keyOf(target)).toMatch(/^[!->@-~]+\?[!->@-~]+$/);
        expect(readKey(keyOf(target))).toEqual(told);
      }),
      { numRuns: 3_000 },
    );
  });

  it('has a path that is written as it was read', () => {
    fc.assert(
      fc.property(drawn.chain(spellings), (target) => {
        const path = target.replace(/^https?:\/\/[^/]*/i, '').replace(/[?#].*$/s, '');
        const parsed = parsePath(path);
        if (parsed.kind !== 'valid') throw new Error(parsed.kind);
        const written = formatPath(parsed.path);
        expect(written).toMatch(/^[!-~]+$/);
        expect(written).not.toMatch(/[?#\\]/);
        expect(parsePath(written)).toEqual(parsed);
      }),
      { numRuns: 2_000 },
    );
  });

  it('shares its key with all requests for the same bytes, and no other', () => {
    const seen = { alike: 0, different: 0 };
    const pair = neighbours
      .filter(([one, other]) => one.row.query !== 'none' && other.row.query !== 'none')
      .chain(([one, other]) =>
        fc.tuple(fc.constant([one, other]), spellings(one), spellings(other)),
      );
    fc.assert(
      fc.property(pair, ([requests, one, other]) => {
        const [first, second] = requests.map((each) => JSON.stringify(canonicalOf(each)));
        const isAlike = first === second;
        seen[isAlike ? 'alike' : 'different'] += 1;
        expect(keyOf(one) === keyOf(other)).toBe(isAlike);
      }),
      { numRuns: 8_000 },
    );
    expect(seen.alike).toBeGreaterThan(1_000);
    expect(seen.different).toBeGreaterThan(1_000);
  });
});

describe('a broken request', () => {
  it('is refused with exactly the faults that were put in, all at once', () => {
    fc.assert(
      fc.property(broken, ({ target, faults }) => {
        expect(verdictOf(target)).toEqual({ kind: 'refused', faults });
        expect(judge(target)).toEqual({ kind: 'refused', faults });
        expect(isKnownPath(target)).toBe(true);
      }),
      { numRuns: 4_000 },
    );
  });

  it('that is no path of the contract is not found, whatever its query', () => {
    fc.assert(
      fc.property(foreign, (target) => {
        expect(verdictOf(target)).toEqual({ kind: 'unknown path' });
        expect(judge(target)).toEqual({ kind: 'unknown path' });
        expect(isKnownPath(target)).toBe(false);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('any string at all', () => {
  it('is judged as the contract says, and its key stays below the root', () => {
    const seen: Record<string, number> = {};
    fc.assert(
      fc.property(hostile, (target) => {
        const verdict = verdictOf(target);
        seen[verdict.kind] = (seen[verdict.kind] ?? 0) + 1;
        expect(verdict).toEqual(judge(target));
        expect(isKnownPath(target)).toBe(verdict.kind !== 'unknown path');
        if (verdict.kind !== 'media') return;
        expectSafeKey(verdict.canonical.originKey);
        expect(keyOf(target)).toMatch(/^[!-~]+$/);
      }),
      // Found here: raw characters beyond ASCII, of which lone surrogates broke the key.
      {
        numRuns: 20_000,
        examples: [['/attachments/1/2/\ud800'], ['/attachments/1/2/\u00c3\u00a9']],
      },
    );
    for (const kind of ['media', 'refused', 'unknown path']) {
      expect(seen[kind], kind).toBeGreaterThan(500);
    }
  });

  // At this length, what takes quadratic time takes ten seconds and more; linear time is far below one.
  const LENGTH = 128 * 1024;
  const units = [
    ...'a / . .. ../ % %2 %2e %2f %ff %25 \\ 0 9 _ a_ & = ? # + size=1& size=128& a=1& %26'.split(
      ' ',
    ),
    ...'http:// https { [] .png e\u0301 \u00e9 \ud800 &size &&= quality=low&'.split(' '),
    ...[' ', '\0'],
  ];
  it.each([
    ['', ''],
    ['/', ''],
    ['http://', '/avatars/1/ab.png'],
    ['/avatars/', '/ab.png'],
    ['/avatars/1/', '.png'],
    ['/avatars/1/', 'x'],
    ['/emojis/', '.png'],
    ['/attachments/1/2/', ''],
    ['/attachments/1/2/', '%00'],
    ['/avatars/1/ab.png?', 'x'],
    ['/avatars/1/ab.png?size=', 'x'],
    ['/attachments/1/2/a?width=', '&width=1'],
    ['/attachments/1/2/a#', 'x'],
  ])('of 128 KB is read in no time: %s…%s', (head, tail) => {
    for (const unit of units) {
      const target = head + unit.repeat(Math.ceil(LENGTH / unit.length)) + tail;
      const started = performance.now();
      const verdict = verdictOf(target);
      expect(performance.now() - started, JSON.stringify(unit)).toBeLessThan(3_000);
      if (verdict.kind === 'media') expectSafeKey(verdict.canonical.originKey);
    }
  });
});
