import { describe, expect, test } from 'vitest';
import { interpolate, planRendering } from '../../../bench/scale/workload.ts';
import { contentKinds, shapesOf } from '../../../bench/trace/shapes.ts';
import { usages } from '../../../bench/trace/usages.ts';

describe('what a rendering takes', () => {
  const all = contentKinds.flatMap((kind) =>
    shapesOf[kind].flatMap((shape) =>
      Object.values(usages)
        .flatMap((usage) => (usage.kind === kind ? usage.asks : []))
        .map((ask) => ({ kind, shape, ask, name: `${kind} ${shape.format}${ask}` })),
    ),
  );

  test.each(all)('$name $shape.widthPx x $shape.heightPx', ({ kind, shape, ask }) => {
    const { work, cpuMs, bytes } = planRendering({ kind, shape }, ask);
    expect(bytes).toBeGreaterThan(50);
    expect(bytes).toBeLessThan(30 * 2 ** 20);
    expect(cpuMs > 0).toBe(work === 'render');
  });

  test('an attachment without parameters is sent as it is', () => {
    const [shape] = shapesOf.attachment;
    if (shape === undefined) throw new Error('There is no shape of an attachment.');
    expect(planRendering({ kind: 'attachment', shape }, '').work).toBe('stream');
  });
});

describe('bytes between measured sizes', () => {
  const points = [
    [100, 1_000],
    [10_000, 10_000],
  ] as const;

  test('lie on a line of the logarithms, beyond the ends as well', () => {
    expect(interpolate(points, 100)).toBeCloseTo(1_000);
    expect(interpolate(points, 1_000)).toBeCloseTo(3_162, 0);
    expect(interpolate(points, 1_000_000)).toBeCloseTo(100_000, 0);
    expect(interpolate(points, 1)).toBeCloseTo(100, 0);
  });

  test('one point gives its own bytes', () => {
    expect(interpolate([[100, 1_000]], 5)).toBe(1_000);
  });
});
