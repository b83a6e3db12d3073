import { describe, expect, test } from 'vitest';
import type { SourceFormat } from '../../../src/contract/image-formats.ts';
import { outputFormats } from '../../../src/contract/image-formats.ts';
import { parseTarget } from '../../../src/contract/media-request.ts';
import { planMedia } from '../../../src/pipeline/render/plan.ts';
import { laneOf } from '../../../src/pipeline/render/render-cost.ts';

const limits = {
  maxInputPixels: 100_000_000,
  maxScanPixels: 4_000_000_000,
  maxEdgePx: 262_144,
  maxFrames: 1_024,
  timeoutMs: 15_000,
  maxResultBytes: 104_857_600,
  webpEffort: 4,
};

/** The plan for an original of so many pixels and frames. */
function plan(
  format: SourceFormat,
  [widthPx, heightPx, frames = 1]: readonly [number, number, number?],
  url: string,
  changed: Partial<typeof limits> = {},
  scans?: number,
) {
  const target = parseTarget(url);
  if (target.kind !== 'media') throw new Error('not media');
  const animation =
    frames > 1 ? { delaysMs: Array.from({ length: frames }, () => 100), plays: 0 } : undefined;
  const facts = { format, widthPx, heightPx, orientation: 1, frames, animation, scans } as const;
  return planMedia({ ...facts, isClean: false }, target.request, { ...limits, ...changed });
}

describe('the lane', () => {
  test.each([
    ['an avatar', 'jpeg', [1024, 1024], '/avatars/1/a.webp?size=80', 'light'],
    ['an emoji', 'png', [128, 128], '/emojis/1.webp?size=48', 'light'],
    ['a phone photo that its decoder reduces', 'jpeg', [4000, 3000], '/icons/1/a.webp', 'light'],
    ['one that it cannot reduce', 'jpeg', [4000, 3000], '/attachments/1/2/a?width=2100', 'heavy'],
    [
      'a film whose frames are images of their own',
      'webp',
      [64, 64, 24],
      '/emojis/1.webp?size=48&animated=true',
      'heavy',
    ],
    [
      'a small animated emoji',
      'gif',
      [64, 64, 12],
      '/emojis/1.webp?size=48&animated=true',
      'light',
    ],
    ['a still of a long animation', 'gif', [480, 480, 300], '/emojis/1.webp?size=48', 'light'],
    ['a short animation', 'gif', [200, 200, 16], '/emojis/1.webp?animated=true', 'heavy'],
    ['an animation', 'gif', [320, 320, 60], '/emojis/1.gif?size=128', 'heavy'],
    ['a 50-megapixel photo', 'jpeg', [8660, 5774], '/attachments/1/2/a?width=400', 'heavy'],
    ['a 12-megapixel AVIF', 'avif', [4000, 3000], '/attachments/1/2/a?width=400', 'heavy'],
    ['a large lossless WebP', 'png', [2000, 2000], '/attachments/1/2/a?format=webp', 'heavy'],
  ] as const)('of %s', (_, format, size, url, lane) => {
    const planned = plan(format, size, url);
    if (planned.kind !== 'render') throw new Error(planned.kind);
    expect(laneOf(planned.cost, planned.job)).toBe(lane);
  });
});

describe('what is refused before it is decoded', () => {
  test.each([
    ['40 000 frames of one pixel', 'gif', [1, 1, 40_000], '/emojis/1.gif', '40000 frames'],
    ['12 000 × 12 000 pixels', 'avif', [12_000, 12_000], '/emojis/1.webp', '144000000 pixels'],
    ['1 500 × 1 500, a hundred times', 'gif', [1_500, 1_500, 100], '/emojis/1.gif', '225000000'],
  ] as const)('%s', (_, format, size, url, reason) => {
    expect(plan(format, size, url)).toEqual({
      kind: 'refuse',
      code: 'MEDIA_TOO_LARGE',
      reason: expect.stringContaining(reason),
    });
  });

  test('what even a picture of one colour would not get through in time', () => {
    const raised = { maxInputPixels: 1_000_000_000 };
    const url = '/attachments/1/2/a?format=png';
    expect(plan('avif', [31_000, 31_000], url, raised)).toEqual({
      kind: 'refuse',
      code: 'MEDIA_TOO_LARGE',
      reason: expect.stringMatching(/^at least \d{5} ms of work, at most 15000$/),
    });
    expect(plan('jpeg', [31_000, 31_000], url, { ...raised, timeoutMs: 60_000 }).kind).toBe(
      'render',
    );
    expect(plan('jpeg', [31_000, 31_000], url, { ...raised, timeoutMs: 1_000 }).kind).toBe(
      'refuse',
    );
  });

  test('what is foreseen to take twice the deadline', () => {
    const url = '/attachments/1/2/a?format=webp';
    expect(plan('png', [10_000, 10_000], url)).toEqual({
      kind: 'refuse',
      code: 'TRANSFORM_TIMEOUT',
      reason: expect.stringMatching(/^some \d{5} ms of work are foreseen, at most 15000$/),
    });
    expect(plan('png', [10_000, 5_000], url).kind).toBe('render');
    expect(plan('png', [10_000, 10_000], url, { timeoutMs: 60_000 }).kind).toBe('render');
  });

  test('no other picture within the default limits: what one machine cannot do, another may', () => {
    for (const format of ['jpeg', 'png', 'webp', 'avif'] as const) {
      for (const query of ['format=jpg', 'format=png', 'format=webp&quality=high']) {
        const url = `/attachments/1/2/a?${query}`;
        expect(plan(format, [10_000, 10_000], url).kind, `${format} ${query}`).toBe('render');
      }
    }
  });
});

describe('the cost', () => {
  const costOf = (...args: Parameters<typeof plan>) => {
    const planned = plan(...args);
    if (planned.kind !== 'render') throw new Error(planned.kind);
    return planned.cost;
  };
  const small = '/avatars/1/a.webp?size=128';

  test('has every scan of a JPEG in it, however small the result', () => {
    const once = costOf('jpeg', [4_000, 3_000], small);
    const often = costOf('jpeg', [4_000, 3_000], small, {}, 10);
    // Measured with sharp 0.35.5: 32 ms, and 168 with ten scans.
    expect(often.typicalMs - once.typicalMs).toBeGreaterThan(80);
    expect(often.typicalMs - once.typicalMs).toBeLessThan(200);
    expect(often.leastMs).toBeGreaterThan(once.leastMs);
  });

  test('has every row in it, which a picture of one column has many of', () => {
    const high = costOf('png', [1, 262_144], '/attachments/1/2/a?format=png');
    const wide = costOf('png', [262_144, 1], '/attachments/1/2/a?format=png');
    // Measured: 300 ms, and 3.
    expect(high.typicalMs).toBeGreaterThan(150);
    expect(wide.typicalMs).toBeLessThan(50);
  });
});

test('the least is never more than the typical', () => {
  for (const format of ['jpeg', 'png', 'webp', 'gif', 'avif'] as const) {
    for (const [name, { qualities }] of Object.entries(outputFormats)) {
      for (const quality of Object.keys(qualities)) {
        const url = `/attachments/1/2/a?format=${name}&quality=${quality}&width=500`;
        const planned = plan(format, [1000, 1000], url);
        if (planned.kind !== 'render') throw new Error(planned.kind);
        expect(planned.cost.leastMs, `${format} ${url}`).toBeLessThan(planned.cost.typicalMs);
      }
    }
  }
});
