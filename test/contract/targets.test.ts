import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { formatPath, parsePath } from '../../src/contract/media-path.ts';
import { parseQuery } from '../../src/contract/media-query.ts';
import { splitTarget } from '../../src/contract/media-request.ts';
import { resourceNames, resourceRows } from '../../src/contract/resources.ts';
import { atScale } from '../support/test-scale.ts';
import {
  type Canonical,
  canonicalOf,
  expectedVerdict,
  externalRow,
  parseTarget,
  rows,
  SIZES,
  type ValidParts,
  type Verdict,
} from '../surface/contract-oracle.ts';
import {
  broken,
  drawn,
  foreign,
  hostile,
  neighbours,
  spellings,
} from '../surface/contract-requests.ts';
import { keyOf, verdictOf } from './service-verdict.ts';
import { examples, pairs } from './target-examples.ts';

/** Result key, computed from the canonical request. */
function formatKey({ originKey, widthPx, heightPx, format, quality, animated }: Canonical): string {
  const path = originKey.split('/').map(encodeURIComponent).join('/');
  const size = `width=${widthPx ?? ''}&height=${heightPx ?? ''}`;
  return `${path}?${size}&format=${format ?? ''}&quality=${quality}&animated=${animated}`;
}

/** Checks that a key names an object below the root. */
function expectSafeKey(originKey: string): void {
  for (const segment of originKey.split('/')) expect(segment).not.toMatch(/^\.{0,2}$/);
  expect(originKey).not.toMatch(/[\\\p{Cc}\p{Surrogate}]/u);
  expect(Buffer.byteLength(originKey)).toBeLessThanOrEqual(1024); // limit of S3
}

/** Compares the service's verdict on a target with the oracle's, and checks its key. */
function expectVerdict(target: string): Verdict {
  const verdict = verdictOf(target);
  expect(verdict).toEqual(expectedVerdict(target));
  if (verdict.kind === 'unknown path' || verdict.kind === 'refused') return verdict;
  const parsed = parsePath(splitTarget(target)[0]);
  if (parsed.kind !== 'valid') return expect.fail(parsed.kind);
  expect(resourceRows[parsed.path.resource].template).toBe(parseTarget(target)?.row.path);
  const written = formatPath(parsed.path);
  expect(written).toMatch(/^[!-"$->@-[\]-~]+$/); // visible ASCII, without a query or fragment
  expect(parsePath(written)).toEqual(parsed);
  if (verdict.kind === 'default avatar') return verdict;
  expectSafeKey(verdict.canonical.originKey);
  expect(keyOf(target)).toBe(formatKey(verdict.canonical));
  return verdict;
}

/** Verdict by construction, without parsing. */
function verdictOfParts(parts: ValidParts): Verdict {
  const { index, filename } = parts.values;
  if (parts.row.query === 'none') return { kind: 'default avatar', index: index ?? '' };
  const canonical = canonicalOf(parts);
  return { kind: 'media', canonical, ...(filename !== undefined && { filename }) };
}

const anyTarget: fc.Arbitrary<readonly [target: string, known: Partial<Verdict>]> = fc.oneof(
  drawn.chain((parts) => spellings(parts).map((text) => [text, verdictOfParts(parts)] as const)),
  broken.map(({ target, faults }) => [target, { kind: 'refused', faults }] as const),
  foreign.map((target) => [target, { kind: 'unknown path' }] as const),
  { arbitrary: hostile.map((target) => [target, {}] as const), weight: 4 },
);

test('parses targets as the contract says, and computes keys that contain all parameters', () => {
  const seen: Record<string, number> = {};
  const numRuns = atScale(4_000, 30_000);
  fc.assert(
    fc.property(anyTarget, ([target, known]) => {
      const verdict = expectVerdict(target);
      const faults = known.kind === 'refused' && { faults: known.faults?.toSorted() };
      expect(verdict).toMatchObject({ ...known, ...faults });
      seen[verdict.kind] = (seen[verdict.kind] ?? 0) + 1;
    }),
    { numRuns, examples: examples.map((example) => [example]) },
  );
  for (const kind of ['media', 'refused', 'unknown path', 'default avatar']) {
    expect(seen[kind], kind).toBeGreaterThan(numRuns / 100);
  }
}, 300_000);

test('two requests share a key only if they request the same bytes', () => {
  const seen = [0, 0];
  const canonicalTextOf = (parts: ValidParts) => JSON.stringify(verdictOfParts(parts));
  const drawnPairs = neighbours.chain(([one, other]) => {
    const isAlike = canonicalTextOf(one) === canonicalTextOf(other);
    return fc.tuple(spellings(one), spellings(other), fc.constant(isAlike));
  });
  const numRuns = atScale(1_000, 8_000);
  fc.assert(
    fc.property(drawnPairs, ([one, other, isAlike]) => {
      seen[Number(isAlike)] = (seen[Number(isAlike)] ?? 0) + 1;
      expect(expectVerdict(one).kind === expectVerdict(other).kind || !isAlike).toBe(true);
      expect(keyOf(one) === keyOf(other)).toBe(isAlike);
    }),
    { numRuns, examples: pairs.map(([...pair]) => [pair]) },
  );
  expect(Math.min(...seen)).toBeGreaterThan(numRuns / 10);
}, 300_000);

test('the service has the resources of contract §1', () => {
  const described = resourceNames.map((name) => {
    const { template, extensions = [], originKey = '', query } = resourceRows[name];
    return { path: template, extensions, originKey, query };
  });
  expect(described).toEqual([...rows, externalRow]);
});

test('accepts only listed sizes from 0 to 5000', () => {
  const all = Array.from({ length: 5_001 }, (_, size) => String(size));
  const isAccepted = (size: string) => verdictOf(`/stickers/1.webp?size=${size}`).kind === 'media';
  expect(all.filter(isAccepted)).toEqual(SIZES);
});

test('truncates the received value in an error message', () => {
  const parsed = parseQuery('image', `size=${'<b>🎉'.repeat(4000)}`);
  if (parsed.kind !== 'invalid') throw new Error(parsed.kind);
  const message = parsed.faults[0]?.message ?? '';
  expect(message).toContain('received "<b>🎉');
  expect(message.length).toBeLessThan(400);
});

describe('parsing a target of 128 KB', () => {
  // Quadratic time would be ten seconds or more, linear time is far below one.
  const LENGTH = 128 * 1024;
  const units = [
    ...['a', '/', '%2f', '%', '&', '= ', '?', '\ud800', '.', '../', '#', '0', 'size=1&', 'a=1&'],
    ...['%ff', '\\', '_', 'a_', '+', '%26', 'http://', '.png', 'e\u0301', '&size', '&&=', '\0'],
  ];
  it.each([
    ['', ''],
    ['http://', '/avatars/1/ab.png'],
    ['/avatars/1/', '.png'],
    ['/emojis/', '.png'],
    ['/attachments/1/2/', '%00'],
    ['/avatars/1/ab.png?', 'x'],
    ['/attachments/1/2/a?width=', '&width=1'],
    ['/attachments/1/2/a#', 'x'],
  ])('takes linear time: %s…%s', (head, tail) => {
    for (const unit of units) {
      const target = head + unit.repeat(Math.ceil(LENGTH / unit.length)) + tail;
      const started = performance.now();
      const verdict = verdictOf(target);
      expect(performance.now() - started, JSON.stringify(unit)).toBeLessThan(3_000);
      if (verdict.kind === 'media') expectSafeKey(verdict.canonical.originKey);
    }
  });
});
