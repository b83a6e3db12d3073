import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseTarget } from '../../src/contract/media-request.ts';
import { platformResources } from '../../src/contract/resources.ts';
import { resultKey } from '../../src/contract/result-key.ts';
import { atScale } from '../support/test-scale.ts';
import { type Row, SIZES } from '../surface/contract-oracle.ts';
import { drawn } from '../surface/contract-requests.ts';
import { keyOf, verdictOf } from './service-verdict.ts';

// The table of contract §14, "Leniency", implemented a second time from its text alone.

type Pairs = readonly (readonly [name: string, value: string])[];

/** Request as the platform's clients send it. */
interface LenientParts {
  readonly row: Row;
  readonly values: Readonly<Record<string, string>>;
  readonly extension: string;
  readonly pairs: Pairs;
}

/** Expected strict request, whose quality may depend on the original, or the expected rejection. */
type Expected =
  | { readonly strict: string; readonly isByOriginal?: boolean }
  | { readonly refused: readonly string[] };

const FORMATS = ['png', 'jpg', 'jpeg', 'webp', 'gif'];
const OTHERS = ['apng', 'avif', 'heic', 'heif', 'jxl', 'svg'];

const lastOf = (pairs: Pairs, name: string): string | undefined =>
  pairs.findLast(([each]) => each === name)?.[1];

const isYes = (text = ''): boolean => text === '1' || /^true$/i.test(text);

const isCount = (text: string): boolean => /^[0-9]+$/.test(text);

function boundsOf({ path }: Row): readonly [number, number] {
  if (/emojis/.test(path)) return [32, 512];
  if (/stickers/.test(path)) return [128, 512];
  return /banners|splashes/.test(path) ? [480, 2048] : [128, 1024];
}

function sizeOf(row: Row, text = ''): number {
  const [min, max] = boundsOf(row);
  const wanted = isCount(text) && BigInt(text) > 0n ? BigInt(text) : 128n;
  const sizes = SIZES.map(Number).filter((size) => size >= min && size <= max);
  return sizes.find((size) => BigInt(size) >= wanted) ?? max;
}

function formatOf(pairs: Pairs): string | undefined {
  const requested = ['format', 'fmt'].map((name) => lastOf(pairs, name)?.toLowerCase() ?? '');
  return requested.find((name) => FORMATS.includes(name));
}

function qualityOf(pairs: Pairs): readonly string[] {
  const quality = lastOf(pairs, 'quality');
  if (quality === undefined) return [];
  return [`quality=${['low', 'lossless'].includes(quality) ? quality : 'high'}`];
}

function edgesOf(pairs: Pairs): { readonly texts: string[]; readonly faults: string[] } {
  const [texts, faults]: [string[], string[]] = [[], []];
  for (const name of ['width', 'height']) {
    const text = lastOf(pairs, name);
    if (text === undefined) continue;
    const isEdge = isCount(text) && text[0] !== '0' && BigInt(text) <= 16_384n;
    if (isEdge) texts.push(`${name}=${Math.min(Number(text), 4096)}`);
    else faults.push(name);
  }
  return { texts, faults };
}

/** Strict request for a lenient one. */
function expectedOf({ row, values, extension, pairs }: LenientParts): Expected {
  const animated = lastOf(pairs, 'animated');
  const fill = (ext: string): string =>
    row.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      name === 'ext' ? ext : encodeURIComponent(values[name] ?? ''),
    );
  if (row.query === 'none') {
    return extension.toLowerCase() === 'png' ? { strict: fill('png') } : { refused: ['ext'] };
  }
  if (row.query === 'external') {
    const { texts, faults } = edgesOf(pairs);
    if (faults.length > 0) return { refused: faults };
    const format = formatOf(pairs);
    const parameters = [...texts, ...(format ? [`format=${format}`] : [])];
    const [quality] = qualityOf(pairs);
    // For png and gif, `high` and `lossless` are equal.
    const dependsOnOriginal = quality === undefined && !['png', 'gif'].includes(format ?? '');
    const query = [...parameters, quality ?? 'quality=lossless', `animated=${isYes(animated)}`];
    return {
      strict: `${fill('')}?${query.join('&')}`,
      isByOriginal: dependsOnOriginal && parameters.length > 0,
    };
  }
  const size = `size=${sizeOf(row, lastOf(pairs, 'size'))}`;
  if (row.query === 'sticker') {
    if (!/^\w+$/.test(extension)) return { refused: ['ext'] };
    const query = [size, ...qualityOf(pairs), `animated=${isYes(animated)}`];
    return { strict: `${fill('webp')}?${query.join('&')}` };
  }
  const lower = extension.toLowerCase();
  if (![...FORMATS, ...OTHERS].includes(lower)) return { refused: ['ext'] };
  const ext = [formatOf(pairs), lower, 'webp'].find((each) => row.extensions.includes(each ?? ''));
  const isMarkedAnimated = Object.entries(values).some(
    ([name, value]) => name.endsWith('hash') && value.startsWith('a_'),
  );
  const isAnimated = animated === undefined ? isMarkedAnimated : isYes(animated);
  return {
    strict: `${fill(ext ?? '')}?${[size, ...qualityOf(pairs), `animated=${isAnimated}`].join('&')}`,
  };
}

const spelled = (words: readonly string[]) =>
  fc.oneof(fc.constantFrom(...words), fc.mixedCase(fc.constantFrom(...words)));
const numbers = fc.oneof(
  fc.constantFrom(...SIZES),
  fc.integer({ min: 0, max: 20_000 }).map(String),
  fc.constantFrom('', '0', '00', '-1', '1.5', '+64', ' 64', '1e3', '0x40', '16384', '16385', 'big'),
  fc.constantFrom('99999999999999999999', '064', '64px', '128.0', '٣'),
);
const pair = fc.oneof(
  fc.tuple(fc.constantFrom('size', 'Size'), numbers),
  fc.tuple(fc.constant('size'), fc.constantFrom('0', '1', '4097')),
  fc.tuple(
    fc.constantFrom('format', 'fmt', 'FORMAT'),
    spelled([...FORMATS, ...OTHERS, 'auto', 'json', 'x']),
  ),
  fc.tuple(
    fc.constantFrom('quality', 'Quality'),
    fc.oneof(spelled(['high', 'low', 'lossless', 'auto', 'best']), fc.constant('')),
  ),
  fc.tuple(
    fc.constantFrom('animated', 'download', 'Animated'),
    fc.oneof(spelled(['true', 'false', 'yes']), fc.constantFrom('', '0', '1', '11', ' true')),
  ),
  fc.tuple(fc.constantFrom('v', 'ex', '__proto__', 'toString'), fc.constant('1')),
);
const edge = fc.tuple(
  fc.constantFrom('width', 'height'),
  fc.oneof(
    fc.integer({ min: 1, max: 16_384 }).map(String),
    fc.constantFrom('4096', '4097', '16384', '16385'),
    numbers,
  ),
);

const lenient: fc.Arbitrary<LenientParts> = drawn.chain(({ row, values }) =>
  fc.record({
    row: fc.constant(row),
    values: fc.constant(values),
    extension: fc.oneof(
      { weight: 8, arbitrary: spelled([...FORMATS, ...OTHERS]) },
      { weight: 1, arbitrary: fc.constantFrom('exe', 'json', '', 'p-g', 'bmp') },
    ),
    pairs: fc.array(fc.oneof({ weight: 3, arbitrary: pair }, edge), { maxLength: 7 }),
  }),
);

function formatTarget({ row, values, extension, pairs }: LenientParts): string {
  const path = row.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(name === 'ext' ? extension : (values[name] ?? '')),
  );
  return `${path}?${pairs.map((each) => each.map(encodeURIComponent).join('=')).join('&')}`;
}

const options = { resources: platformResources };

/** Parses a target in platform mode. Returns the result key, or the names of invalid parts. */
function read(target: string) {
  const parsed = parseTarget(target, options);
  switch (parsed.kind) {
    case 'default avatar':
      return { key: parsed.index };
    case 'media':
      return { key: resultKey(parsed.request), isDownload: parsed.isDownload };
    case 'invalid': {
      const { code, faults } = parsed.error;
      return { code, refused: faults.map(({ path }) => path).sort() };
    }
    case 'unknown':
      return { code: 'NOT_FOUND', refused: [] };
  }
}

test('a lenient request has the result key of a strict request, or validation errors', () => {
  const seen = { strict: 0, byOriginal: 0, refused: 0 };
  const numRuns = atScale(1_000, 5_000);
  fc.assert(
    fc.property(lenient, (parts) => {
      const found = read(formatTarget(parts));
      const expected = expectedOf(parts);
      if ('refused' in expected) {
        seen.refused += 1;
        expect(found).toEqual({ code: 'INVALID_FORM_BODY', refused: expected.refused.toSorted() });
        return;
      }
      seen.strict += 1;
      expect(['media', 'default avatar']).toContain(verdictOf(expected.strict).kind);
      const strictKey = keyOf(expected.strict);
      if (expected.isByOriginal === true) {
        seen.byOriginal += 1;
        expect(found.key).toBe(strictKey.replace('&quality=lossless&', '&quality=by-original&'));
        return;
      }
      expect(found.key).toBe(strictKey);
      if (parts.row.query === 'none') return;
      expect(found.isDownload).toBe(isYes(lastOf(parts.pairs, 'download')));
      // The strict request is equal to itself when parsed leniently.
      expect(read(expected.strict).key).toBe(found.key);
    }),
    { numRuns },
  );
  expect(Math.min(seen.strict, seen.refused)).toBeGreaterThan(numRuns / 20);
  expect(seen.byOriginal).toBeGreaterThan(0);
}, 300_000);

describe('the path of an attachment', () => {
  test.each([
    ['/attachments/photo.png', 'attachments/photo.png'],
    ['/attachments/a/b/c/d%2Fe.png', 'attachments/a/b/c/d/e.png'],
    ['/attachments/avatars/icons/1', 'attachments/avatars/icons/1'],
    ['/attachments/01/-2/%C3%A9', 'attachments/01/-2/é'],
    ['/attachments/1/2/%252e%252e', 'attachments/1/2/%2e%2e'],
    [`/attachments/${'x'.repeat(1_012)}`, `attachments/${'x'.repeat(1_012)}`],
  ])('can have any depth: %s', (target, key) => {
    const parsed = parseTarget(target, options);
    if (parsed.kind !== 'media') return expect.fail(parsed.kind);
    expect(parsed.request.originKey).toBe(key);
    expect(parsed.request.filename).toBe(key.split('/').at(-1));
    expect(parsed.request.isPassthrough).toBe(true);
  });

  test.each([
    ...['', '/', 'a//b', 'a/', '%2Fa', 'a%2F', '.', 'a/../b', 'a%2F..%2Fb', '%2e%2e/a'],
    ...['a%00', 'a%5Cb', 'a%0A/b', '%zz', '%ff/a', 'x'.repeat(1_013), '%C3%A9'.repeat(507)],
  ])('rejects segments that leave the directory, and keys that are too long for S3: %s', (path) => {
    expect(read(`/attachments/${path}`)).toEqual({
      code: 'INVALID_FORM_BODY',
      refused: ['attachment_path'],
    });
  });
});

test.each([
  ['/themes/a.b.css', ['theme_name']],
  ['/themes/.css', ['theme_name']],
  ['/themes/..css', ['theme_name']],
  [`/themes/${'a'.repeat(129)}.css`, ['theme_name']],
  ['/themes/a%20b.css', ['theme_name']],
  ['/themes/a%2Fb.css', ['theme_name']],
  ['/themes/%E9.css', ['theme_name']],
  ['/themes/a.js', ['ext']],
  ['/entrance-sounds/x/ab.mp3', ['user_id']],
  ['/entrance-sounds/1/a%2E%2E.mp3', ['sound_name']],
  ['/entrance-sounds/1/ab.flac', ['ext']],
  ['/entrance-sounds/01/a.b.wma', ['ext', 'sound_name', 'user_id']],
  ['/branding/a%20b/ab.png', ['entity_name']],
  ['/branding/a/a.b.bmp?size=1', ['branding_hash', 'ext']],
])('rejects %s because of %j', (target, refused) => {
  expect(read(target)).toEqual({ code: 'INVALID_FORM_BODY', refused });
});

test.each([
  ...['/attachments', '/avatars/1', '/avatars/avatars/3.png', '/nowhere', '/themes/a', '/themes'],
  ...['/themes/a/b.css', '/entrance-sounds/a.mp3', '/branding/a.png'],
])('returns 404 for %s', (target) => {
  expect(read(target)).toEqual({ code: 'NOT_FOUND', refused: [] });
});

test.each([
  [16_384, options],
  [4_096, undefined],
])('the error for a width above %i contains the allowed range', (maxPx, options) => {
  const message = `Expected an integer from 1 to ${maxPx} but received "${maxPx + 1}".`;
  const parsed = parseTarget(`/attachments/1/2/a.png?width=${maxPx + 1}`, options);
  expect(parsed).toMatchObject({
    kind: 'invalid',
    error: { faults: [{ path: 'width', message }] },
  });
});
