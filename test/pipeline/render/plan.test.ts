import { describe, expect, test } from 'vitest';
import { parseTarget } from '../../../src/contract/media-request.ts';
import type { ImageFacts } from '../../../src/formats/image-facts.ts';
import { type Plan, planMedia } from '../../../src/pipeline/render/plan.ts';

const limits = {
  maxInputPixels: 1_000_000,
  maxScanPixels: 1_000_000,
  maxEdgePx: 10_000,
  maxFrames: 100,
  timeoutMs: 15_000,
  maxResultBytes: 1_000_000,
  webpEffort: 4,
};

const still: ImageFacts = {
  format: 'png',
  widthPx: 200,
  heightPx: 100,
  orientation: 1,
  frames: 1,
  animation: undefined,
  isClean: true,
};
const animated: ImageFacts = {
  ...still,
  format: 'gif',
  frames: 3,
  animation: { delaysMs: [100, 200, 300], plays: 0 },
};

function plan(facts: Partial<ImageFacts>, url: string, base = still, bounds = limits): Plan {
  const target = parseTarget(url);
  if (target.kind !== 'media') throw new Error('not media');
  return planMedia({ ...base, ...facts }, target.request, bounds);
}

const avatar = '/avatars/1/ab12';
const attachment = '/attachments/1/2/a.png';

type Row = [what: string, facts: Partial<ImageFacts>, url: string, base?: ImageFacts];

const webp = { format: 'webp' } as const;
const jpeg = { format: 'jpeg' } as const;

describe('passthrough', () => {
  test.each<Row>([
    ['a png at its own width', {}, `${avatar}.png?size=240`],
    ['a png smaller than asked for', {}, `${avatar}.png?size=4096&quality=lossless`],
    ['a lossless webp', webp, `${avatar}.webp?size=240&quality=lossless`],
    ['a lossless jpeg', jpeg, `${avatar}.jpg?size=240&quality=lossless`],
    ['a bare sticker', webp, '/stickers/1.webp'],
    ['a box of the very size', {}, `${attachment}?width=200&height=100`],
    ['a box of the same ratio, but larger', {}, `${attachment}?width=400&height=200`],
    ['the format it has already', {}, `${attachment}?format=png`],
    ['an animated gif', {}, `${avatar}.gif?size=240`, animated],
    ['an animated webp', webp, '/stickers/1.webp', animated],
    [
      'an animated webp avatar',
      webp,
      `${avatar}.webp?size=240&animated=true&quality=lossless`,
      animated,
    ],
    ['an animated gif attachment', {}, `${attachment}?format=gif&animated=true`, animated],
  ])('%s', (_, facts, url, base) => {
    expect(plan(facts, url, base)).toEqual({ kind: 'passthrough' });
  });
});

describe('not passthrough:', () => {
  test.each<Row>([
    ['another format', {}, `${avatar}.webp?size=240&quality=lossless`],
    ['a smaller size', {}, `${avatar}.png?size=128`],
    ['metadata to strip', { isClean: false }, `${avatar}.png?size=240`],
    ['low quality', {}, `${avatar}.png?size=240&quality=low`],
    ['a lossy quality', webp, `${avatar}.webp?size=240`],
    ['a box of another ratio', {}, `${attachment}?width=100&height=100`],
    ['an animation not wanted', webp, `${avatar}.webp?size=240&quality=lossless`, animated],
    ['an animation that an attachment must ask for', {}, `${attachment}?format=gif`, animated],
  ])('%s', (_, facts, url, base) => {
    const made = plan(facts, url, base);
    expect(made).toMatchObject({ kind: 'render', job: { animation: undefined } });
    if (base === animated) expect(made).toMatchObject({ isOnlyQuality: false });
  });
});

describe('a render', () => {
  test('that changes the quality alone may give way to the original', () => {
    const isOnlyQuality = (facts: Partial<ImageFacts>, url: string) => {
      const made = plan(facts, url);
      return made.kind === 'render' && made.isOnlyQuality;
    };
    expect(isOnlyQuality({ format: 'jpeg' }, `${avatar}.jpg?size=240`)).toBe(true);
    expect(isOnlyQuality({}, `${avatar}.png?size=240&quality=low`)).toBe(true);
    expect(isOnlyQuality({ format: 'jpeg', isClean: false }, `${avatar}.jpg?size=240`)).toBe(false);
    expect(isOnlyQuality({ format: 'jpeg' }, `${avatar}.jpg?size=128`)).toBe(false);
  });

  test('of a gif with nothing to change but metadata is no more than another container', () => {
    const moving = { frames: 3, animation: { delaysMs: [10, 20, 30], plays: 0 } };
    const isRewrite = (facts: Partial<ImageFacts>, url: string) => {
      const made = plan({ format: 'gif', isClean: false, isRewritable: true, ...facts }, url);
      return made.kind === 'render' && made.job.isRewrite;
    };
    expect(isRewrite({}, `${avatar}.gif?size=240`)).toBe(true);
    expect(isRewrite({}, `${attachment}?format=gif&quality=high`)).toBe(true);
    expect(isRewrite(moving, `${avatar}.gif?size=240`)).toBe(true);
    expect(isRewrite(moving, `${attachment}?format=gif`)).toBe(false);
    expect(isRewrite({ isRewritable: false }, `${avatar}.gif?size=240`)).toBe(false);
    expect(isRewrite({}, `${avatar}.gif?size=128`)).toBe(false);
    expect(isRewrite({}, `${avatar}.gif?size=240&quality=low`)).toBe(false);
    expect(isRewrite({}, `${avatar}.webp?size=240&quality=lossless`)).toBe(false);
  });

  test('measures after orientation', () => {
    expect(
      plan({ format: 'jpeg', orientation: 6, isClean: false }, `${avatar}.jpg?size=80`),
    ).toMatchObject({
      job: { orientation: 6, resize: 'scale', size: { widthPx: 80, heightPx: 160 } },
    });
  });

  test.each([
    ['a large JPEG', 'jpeg', [2000, 1333], 'width=512', true],
    ['one that is not so large', 'jpeg', [1600, 1200], 'width=512', false],
    ['a small rendering', 'jpeg', [2000, 1333], 'width=200', false],
    ['a WebP', 'webp', [2000, 1333], 'width=512', false],
  ] as const)('shrinks on load: %s', (_, format, [widthPx, heightPx], query, shrinksOnLoad) => {
    const facts = { format, widthPx, heightPx };
    const bounds = { ...limits, maxInputPixels: 4_000_000 };
    expect(plan(facts, `${attachment}?${query}`, still, bounds)).toMatchObject({
      job: { shrinksOnLoad },
    });
  });

  test('keeps the animation where the format has one and it is asked for', () => {
    const animationOf = (url: string) => {
      const made = plan({}, url, animated);
      return made.kind === 'render' ? made.job.animation : undefined;
    };
    expect(animationOf(`${avatar}.gif`)).toEqual(animated.animation);
    expect(animationOf(`${avatar}.webp?animated=true`)).toEqual(animated.animation);
    expect(animationOf(`${avatar}.webp`)).toBeUndefined();
    expect(animationOf(`${avatar}.png?animated=true`)).toBeUndefined();
    expect(animationOf(`${attachment}?width=50`)).toBeUndefined();
    expect(animationOf(`${attachment}?width=50&animated=true`)).toEqual(animated.animation);
  });

  test('without a format has the original one, or webp for what has no encoder', () => {
    expect(plan({}, `${attachment}?width=50`)).toMatchObject({ job: { format: 'png' } });
    expect(plan({ format: 'avif' }, `${attachment}?width=50`)).toMatchObject({
      job: { format: 'webp' },
    });
  });

  describe('of an APNG', () => {
    const apng = { ...animated, format: 'apng' } as const;

    test.each([
      ['width=50', 'png', undefined],
      ['width=50&animated=true', 'webp', apng.animation],
      ['format=gif&animated=true', 'gif', apng.animation],
      ['format=png', 'png', undefined],
      ['quality=high', 'png', undefined],
    ])('%s is a render as %s', (query, format, animation) => {
      const made = plan({}, `${attachment}?${query}`, apng);
      expect(made).toMatchObject({ kind: 'render', isOnlyQuality: false, job: { format } });
      expect(made.kind === 'render' && made.job.animation).toBe(animation);
    });

    test('with faulty frames is a render as a still, and refused as an animation', () => {
      const faulty = { animation: undefined, animationFault: 'no image data' };
      expect(plan(faulty, `${avatar}.png`, apng)).toMatchObject({ kind: 'render' });
      expect(plan(faulty, `${avatar}.webp`, apng)).toMatchObject({ kind: 'render' });
      expect(plan(faulty, `${avatar}.gif`, apng)).toEqual({
        kind: 'refuse',
        code: 'UNPROCESSABLE_MEDIA',
        reason: 'no image data',
      });
    });
  });
});

test('image data that cannot hold the picture are a fault of the still alone', () => {
  const apng = { ...animated, format: 'apng', dataFault: 'too few bytes' } as const;
  const fault = { kind: 'refuse', code: 'UNPROCESSABLE_MEDIA', reason: 'too few bytes' };
  expect(plan(apng, `${avatar}.png`)).toEqual(fault);
  expect(plan({ dataFault: 'too few bytes' }, `${avatar}.png?size=240`)).toEqual(fault);
  expect(plan(apng, `${avatar}.gif`)).toMatchObject({ kind: 'render' });
  // Which of two faults is named does not change with the other.
  const huge = { dataFault: 'too few bytes', widthPx: 1_000, heightPx: 1_001 };
  expect(plan(huge, `${avatar}.png`)).toMatchObject({ code: 'MEDIA_TOO_LARGE' });
});

describe('the limits', () => {
  const large = { widthPx: 1_000, heightPx: 1_001 };
  const long = { widthPx: 500, heightPx: 1_000 };
  const lossless = `${avatar}.jpg?size=240&quality=lossless`;

  test.each<Row>([
    ['pixels of a still', large, `${avatar}.webp`],
    ['pixels of a passthrough', large, `${avatar}.png?size=1024`],
    ['pixels of all frames that are decoded', long, `${avatar}.gif`, animated],
    ['pixels of all frames that are passed through', long, `${avatar}.gif?size=512`, animated],
    ['frames, decoded or not', { frames: 101 }, `${avatar}.png`, animated],
    ['the width', { widthPx: 10_001, heightPx: 1 }, `${avatar}.webp`],
    ['the height of a passthrough', { widthPx: 1, heightPx: 10_001 }, `${avatar}.png`],
    ['the edges of a frame', { widthPx: 1, heightPx: 10_001 }, `${avatar}.gif`, animated],
    ['scans', { ...jpeg, scans: 51 }, `${avatar}.webp`],
    ['scans of a passthrough', { ...jpeg, scans: 51 }, lossless],
  ])('hold for %s', (_, facts, url, base) => {
    expect(plan(facts, url, base)).toMatchObject({ kind: 'refuse' });
  });

  test.each<Row>([
    ['the very last pixel', { widthPx: 1_000, heightPx: 1_000 }, `${avatar}.webp`],
    ['one frame of many', long, `${avatar}.png`, animated],
    ['the very last frame', { frames: 100 }, `${avatar}.png`, animated],
    ['the longest edge', { widthPx: 10_000, heightPx: 1 }, `${avatar}.webp`],
    ['the very last scan', { ...jpeg, scans: 50 }, `${avatar}.webp`],
  ])('allow %s', (_, facts, url, base) => {
    expect(plan(facts, url, base).kind).toBe('render');
  });
});
