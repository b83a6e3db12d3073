import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { outputFormats, type SourceFormat } from '../../../src/contract/image-formats.ts';
import { parseTarget } from '../../../src/contract/media-request.ts';
import type { ImageHeader, Size } from '../../../src/formats/image-header.ts';
import { type Plan, planMedia } from '../../../src/pipeline/render/plan.ts';
import { laneOf } from '../../../src/pipeline/render/render-cost.ts';
import { fitBox, fitProportionally } from '../../../src/pipeline/render/target-size.ts';

const size = (widthPx: number, heightPx: number): Size => ({ widthPx, heightPx });

// The goldens test size, format, frames and unmodified originals.

describe('a size', () => {
  const edge = fc.integer({ min: 1, max: 70_000 });
  test('scaled proportionally is never enlarged, empty or larger than the format allows, and keeps its ratio', () => {
    fc.assert(
      fc.property(edge, edge, fc.option(edge, { nil: undefined }), edge, (w, h, widthPx, limit) => {
        const fitted = fitProportionally(size(w, h), { widthPx, heightPx: undefined }, limit);
        expect(fitted.widthPx).toBeLessThanOrEqual(Math.min(w, widthPx ?? w, limit));
        expect(fitted.heightPx).toBeLessThanOrEqual(Math.min(h, limit));
        // One edge is requested; the other one is its rounded proportion.
        const proportion = (length: number) => Math.max(1, Math.round(length));
        const byWidth = fitted.heightPx === proportion((h * fitted.widthPx) / w);
        const byHeight = fitted.widthPx === proportion((w * fitted.heightPx) / h);
        expect(byWidth || byHeight).toBe(true);
      }),
    );
  });

  test('of a crop fits into the original, and is the box itself if that fits', () => {
    fc.assert(
      fc.property(edge, edge, edge, edge, (w, h, boxWidth, boxHeight) => {
        const fitted = fitBox(size(w, h), size(boxWidth, boxHeight));
        expect(fitted.widthPx).toBeLessThanOrEqual(w);
        expect(fitted.heightPx).toBeLessThanOrEqual(h);
        const isWhole = fitted.widthPx === boxWidth && fitted.heightPx === boxHeight;
        if (boxWidth <= w && boxHeight <= h) expect(isWhole).toBe(true);
        else expect(fitted.widthPx === w || fitted.heightPx === h).toBe(true);
        const skew = Math.abs(fitted.widthPx * boxHeight - fitted.heightPx * boxWidth);
        expect(skew, 'an edge is half a pixel off').toBeLessThanOrEqual(
          Math.max(boxWidth, boxHeight),
        );
      }),
    );
  });
});

const limits = {
  maxInputPixels: 1_000_000,
  maxAnimationPixels: 2_500_000,
  maxScanPixels: 1_000_000,
  maxEdgePx: 10_000,
  maxFrames: 100,
  timeoutMs: 15_000,
  maxResultBytes: 1_000_000,
  webpEffort: 4,
};

const usual: ImageHeader = {
  format: 'png',
  widthPx: 200,
  heightPx: 100,
  orientation: 1,
  frames: 1,
  animation: undefined,
  isClean: true,
};
const animatedHeader = { frames: 3, animation: { delaysMs: [100, 200, 300], plays: 0 } };
const gif = { ...animatedHeader, format: 'gif' } as const;
const webp = { format: 'webp' } as const;
const jpeg = { format: 'jpeg' } as const;
const apng = { ...animatedHeader, format: 'apng' } as const;

function plan(header: Partial<ImageHeader>, url: string, bounds = limits): Plan {
  const target = parseTarget(url);
  if (target.kind !== 'media') throw new Error('not media');
  return planMedia({ ...usual, ...header }, target.request, bounds);
}

const avatar = '/avatars/1/ab12';
const attachment = '/attachments/1/2/a.png';
const lossless = `${avatar}.webp?size=240&quality=lossless`;

const rewritable = { format: 'gif', isClean: false, isRewritable: true } as const;
const faulty = { ...apng, animationError: 'no image data', animation: undefined };
const dataError = 'too few bytes';
const large = { widthPx: 1_000, heightPx: 1_001 };
const long = { ...gif, widthPx: 1_000, heightPx: 834 };
const wide = {
  ...gif,
  widthPx: 1_000,
  heightPx: 1_001,
  frames: 2,
  animation: { delaysMs: [1, 1], plays: 0 },
};
const high = { widthPx: 1, heightPx: 10_001 };

const rendered = { kind: 'render' };
/** Whether the job only rewrites the container. */
const rewrite = (isRewrite: boolean) => ({ ...rendered, job: { isRewrite } });
const refusal = (reason: string) => ({ kind: 'refuse', code: 'UNPROCESSABLE_MEDIA', reason });
const tooLarge = { kind: 'refuse', code: 'MEDIA_TOO_LARGE' };

describe('a plan', () => {
  test.each<[what: string, header: Partial<ImageHeader>, url: string, expected: object]>([
    ['a gif with metadata', rewritable, `${avatar}.gif?size=240`, rewrite(true)],
    [
      'an attachment with metadata',
      rewritable,
      `${attachment}?format=gif&quality=high`,
      rewrite(true),
    ],
    [
      'an animated gif with metadata',
      { ...rewritable, ...animatedHeader },
      `${avatar}.gif?size=240`,
      rewrite(true),
    ],
    [
      'the still of an animated gif',
      { ...rewritable, ...animatedHeader },
      `${attachment}?format=gif`,
      rewrite(false),
    ],
    [
      'a gif that cannot be rewritten',
      { ...rewritable, isRewritable: false },
      `${avatar}.gif`,
      rewrite(false),
    ],
    ['a smaller gif', rewritable, `${avatar}.gif?size=128`, rewrite(false)],
    ['a gif of low quality', rewritable, `${avatar}.gif?size=240&quality=low`, rewrite(false)],
    ['a gif as a WebP', rewritable, lossless, rewrite(false)],

    ['the still of damaged frames', faulty, `${avatar}.png`, rendered],
    ['the still of damaged frames in another format', faulty, `${avatar}.webp`, rendered],
    ['damaged frames', faulty, `${avatar}.gif`, refusal('no image data')],
    ['a damaged default image', { ...apng, dataError }, `${avatar}.png`, refusal(dataError)],
    ['a damaged still', { dataError }, `${avatar}.png?size=240`, refusal(dataError)],
    ['frames with a damaged default image', { ...apng, dataError }, `${avatar}.gif`, rendered],
    // Of two errors, the size is reported.
    ['a damaged still with too many pixels', { ...large, dataError }, `${avatar}.png`, tooLarge],

    ['a still with too many pixels', large, `${avatar}.webp`, tooLarge],
    [
      'a still with the maximum pixels',
      { widthPx: 1_000, heightPx: 1_000 },
      `${avatar}.webp`,
      rendered,
    ],
    ['an unmodified still with too many pixels', large, `${avatar}.png?size=1024`, tooLarge],
    ['decoded frames with too many pixels', long, `${avatar}.gif`, tooLarge],
    ['unmodified frames with too many pixels', long, `${avatar}.gif?size=512`, tooLarge],
    ['frames with the maximum pixels', { ...long, heightPx: 833 }, `${avatar}.gif`, rendered],
    ['a decoded frame with too many pixels', wide, `${avatar}.gif`, tooLarge],
    ['an unmodified frame with too many pixels', wide, `${avatar}.gif?size=1024`, tooLarge],
    ['one frame of an animation with too many pixels', long, `${avatar}.png`, rendered],
    [
      'too many frames, though only one is decoded',
      { ...gif, frames: 101 },
      `${avatar}.png`,
      tooLarge,
    ],
    ['the maximum number of frames', { ...gif, frames: 100 }, `${avatar}.png`, rendered],
    ['too great a width', { widthPx: 10_001, heightPx: 1 }, `${avatar}.webp`, tooLarge],
    ['the maximum width', { widthPx: 10_000, heightPx: 1 }, `${avatar}.webp`, rendered],
    ['too great a height of an unmodified still', high, `${avatar}.png`, tooLarge],
    ['too great a height of a frame', { ...gif, ...high }, `${avatar}.gif`, tooLarge],
    ['too many scans', { ...jpeg, scans: 51 }, `${avatar}.webp`, tooLarge],
    ['the maximum number of scans', { ...jpeg, scans: 50 }, `${avatar}.webp`, rendered],
    [
      'too many scans of an unmodified JPEG',
      { ...jpeg, scans: 51 },
      `${avatar}.jpg?quality=lossless`,
      tooLarge,
    ],
  ])('is correct for %s', (_, header, url, expected) => {
    expect(plan(header, url)).toMatchObject(expected);
  });

  test.each([
    ['high', 'format=webp&quality=high', true],
    ['low', 'format=webp&quality=low', true],
    ['lossless', 'format=webp&quality=lossless', false],
    ['a lossless format', 'format=png&quality=high', false],
  ] as const)(
    'lets the decoder reduce unless the quality is lossless: %s',
    (_, query, shrinksOnLoad) => {
      for (const header of [jpeg, webp]) {
        expect(plan(header, `${attachment}?width=10&${query}`)).toMatchObject({
          job: { shrinksOnLoad },
        });
      }
    },
  );
});

describe('the cost', () => {
  const defaults = {
    ...limits,
    maxInputPixels: 100_000_000,
    maxAnimationPixels: 250_000_000,
    maxScanPixels: 4_000_000_000,
    maxEdgePx: 262_144,
    maxFrames: 1_024,
  };
  /** Plans a render of an original by its pixels and frames. */
  const planFor = (
    format: SourceFormat,
    [widthPx, heightPx, frames = 1]: readonly [number, number, number?],
    url: string,
    changed: Partial<typeof limits> = {},
    scans?: number,
  ): Plan => {
    const delaysMs = Array.from({ length: frames }, () => 100);
    const animation = frames > 1 ? { delaysMs, plays: 0 } : undefined;
    const header = { format, widthPx, heightPx, frames, animation, scans, isClean: false };
    return plan(header, url, { ...defaults, ...changed });
  };
  const renderFor = (...args: Parameters<typeof planFor>) => {
    const planned = planFor(...args);
    return planned.kind === 'render' ? planned : expect.fail(planned.kind);
  };

  test.each([
    ['an avatar', 'jpeg', [1024, 1024], '/avatars/1/a.webp?size=80', 'light'],
    ['an emoji', 'png', [128, 128], '/emojis/1.webp?size=48', 'light'],
    ['a phone photo that its decoder reduces', 'jpeg', [4000, 3000], '/icons/1/a.webp', 'light'],
    [
      'a phone photo that its decoder cannot reduce',
      'jpeg',
      [4000, 3000],
      '/attachments/1/2/a?width=2100',
      'heavy',
    ],
    [
      'an animation of 24 frames',
      'webp',
      [64, 64, 24],
      '/emojis/1.webp?size=48&animated=true',
      'heavy',
    ],
    ['a small emoji', 'gif', [64, 64, 12], '/emojis/1.webp?size=48&animated=true', 'light'],
    ['a still of a long animation', 'gif', [480, 480, 300], '/emojis/1.webp?size=48', 'light'],
    ['a short animation', 'gif', [200, 200, 16], '/emojis/1.webp?animated=true', 'heavy'],
    ['an animation', 'gif', [320, 320, 60], '/emojis/1.gif?size=128', 'heavy'],
    ['a 50-megapixel photo', 'jpeg', [8660, 5774], '/attachments/1/2/a?width=400', 'heavy'],
    ['a 12-megapixel AVIF', 'avif', [4000, 3000], '/attachments/1/2/a?width=400', 'heavy'],
    ['a large lossless WebP', 'png', [2000, 2000], '/attachments/1/2/a?format=webp', 'heavy'],
  ] as const)('assigns the lane of %s', (_, format, edges, url, lane) => {
    const { cost, job } = renderFor(format, edges, url);
    expect(laneOf(cost, job)).toBe(lane);
  });

  const png = '/attachments/1/2/a?format=png';
  const asWebp = '/attachments/1/2/a?format=webp&animated=true';
  const raised = { maxInputPixels: 1_000_000_000 };
  const hopeless = /^at least \d{5} ms of work, at most 15000$/;
  const late = /^about \d{5} ms of work estimated, at most 15000$/;
  test.each([
    [
      'a render that would be late even for a single colour',
      'avif',
      [31_000, 31_000],
      png,
      raised,
      hopeless,
    ],
    [
      'a render whose estimate is twice the deadline',
      'gif',
      [1_000, 1_000, 150],
      asWebp,
      raised,
      late,
    ],
    [
      'a render that is too long for a short deadline',
      'jpeg',
      [31_000, 31_000],
      png,
      { ...raised, timeoutMs: 1_000 },
      /at least/,
    ],
    [
      'no render whose estimate is below a long deadline',
      'gif',
      [1_000, 1_000, 150],
      asWebp,
      { ...raised, timeoutMs: 60_000 },
      undefined,
    ],
    [
      'no render whose estimate is below the deadline',
      'gif',
      [1_000, 1_000, 75],
      asWebp,
      {},
      undefined,
    ],
  ] as const)('rejects %s', (_, format, edges, url, changed, reason) => {
    const planned = planFor(format, edges, url, changed);
    const code = reason === late ? 'TRANSFORM_TIMEOUT' : 'MEDIA_TOO_LARGE';
    if (reason === undefined) expect(planned.kind).toBe('render');
    else expect(planned).toMatchObject({ code, reason: expect.stringMatching(reason) });
  });

  // A HEIC of 100 megapixels takes most of the deadline to decode.
  test('accepts a lossless still of any size', () => {
    for (const format of ['jpeg', 'png', 'webp', 'gif', 'avif'] as const) {
      for (const edge of [1_999, 2_000, 3_999, 4_000, 10_000]) {
        const { cost } = renderFor(format, [edge, edge], '/attachments/1/2/a?format=webp');
        expect(cost.typicalMs, `${format} ${edge}`).toBeLessThan(15_000);
      }
    }
  });

  test('accepts all other images within the default limits, since a faster machine might render them', () => {
    for (const format of ['jpeg', 'png', 'webp', 'avif'] as const) {
      for (const query of ['format=jpg', 'format=png', 'format=webp&quality=high'])
        renderFor(format, [10_000, 10_000], `/attachments/1/2/a?${query}`);
    }
  });

  test('includes each scan of a JPEG, and each row, of which a one-column image has many', () => {
    const small = '/avatars/1/a.webp?size=128';
    const once = renderFor('jpeg', [4_000, 3_000], small).cost;
    const often = renderFor('jpeg', [4_000, 3_000], small, {}, 10).cost;
    // Measured with sharp 0.35.5: 32 ms, and 168 with ten scans.
    expect(often.typicalMs - once.typicalMs).toBeGreaterThan(80);
    expect(often.typicalMs - once.typicalMs).toBeLessThan(200);
    expect(often.minMs).toBeGreaterThan(once.minMs);
    // Measured: 300 ms for one column, 3 ms for one row.
    expect(renderFor('png', [1, 262_144], png).cost.typicalMs).toBeGreaterThan(150);
    expect(renderFor('png', [262_144, 1], png).cost.typicalMs).toBeLessThan(50);
  });

  test('is lower for a single colour than for a photograph', () => {
    for (const format of ['jpeg', 'png', 'webp', 'gif', 'avif'] as const) {
      for (const [name, { qualities }] of Object.entries(outputFormats)) {
        for (const quality of Object.keys(qualities)) {
          const url = `/attachments/1/2/a?format=${name}&quality=${quality}&width=500`;
          const { minMs, typicalMs } = renderFor(format, [1000, 1000], url).cost;
          expect(minMs, `${format} ${url}`).toBeLessThan(typicalMs);
        }
      }
    }
  });
});
