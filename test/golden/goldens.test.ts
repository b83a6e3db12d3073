import { describe, expect, test } from 'vitest';
import { outputFormats } from '../../src/contract/image-formats.ts';
import { parseTarget } from '../../src/contract/media-request.ts';
import { resourceRows } from '../../src/contract/resources.ts';
import { readImageFacts } from '../../src/formats/read-image-facts.ts';
import { describeGoldens, goldens, readExpected, readOriginal } from './golden-run.ts';
import { isShort, readGoldenTable } from './golden-table.ts';

const rows = readGoldenTable();

describe('a golden of each kind and format, and one of each category', () => {
  describeGoldens('goldens', rows.filter(isShort(rows)), 12);
});

test('every golden has a row, and they are small', async () => {
  const named = new Set(rows.flatMap(({ golden }) => golden ?? []));
  expect(await goldens.findStale(named)).toEqual([]);
  const bytes = [...named].reduce((sum, golden) => sum + (goldens.read(golden)?.length ?? 0), 0);
  expect(bytes).toBeLessThan(8_000_000);
});

test.each(['png', 'jpg', 'webp', 'gif', 'animated-gif', 'animated-webp'])(
  'a %s of low quality is smaller than one of high quality',
  (name) => {
    const size = (quality: string): number => {
      const row = rows.find((candidate) => candidate.name === `quality/${name}-${quality}`);
      return (row && readExpected(row)?.length) ?? 0;
    };
    expect(size('low')).toBeGreaterThan(0);
    expect(size('low')).toBeLessThan(size('high'));
    expect(size('high')).toBeLessThanOrEqual(size('lossless'));
  },
);

const stored = Object.entries(resourceRows).filter(([, { originKey }]) => originKey !== undefined);

test.each(stored.map(([resource]) => resource))(
  'of the kind "%s" there is a golden',
  (resource) => {
    const own = rows.filter(({ target }) => {
      const parsed = parseTarget(target);
      return parsed.kind === 'media' && parsed.request.resource === resource;
    });
    // The original's own bytes would show that it is found, but not that it is rendered.
    expect(own.flatMap(({ golden }) => golden ?? []).length).toBeGreaterThan(0);
  },
);

test('the table covers every format, quality and orientation', () => {
  expect(rows.length).toBeGreaterThanOrEqual(120);
  const requests = rows.map(({ target }) => parseTarget(target));
  const values = (read: (row: (typeof requests)[number]) => unknown): Set<unknown> =>
    new Set(requests.map(read));
  // Every format by name, and the original's own.
  expect(values((r) => r.kind === 'media' && r.request.format)).toEqual(
    new Set([...Object.keys(outputFormats), undefined]),
  );
  expect(values((r) => r.kind === 'media' && r.request.quality).size).toBe(3);
  const orientations = rows.map(({ original }) => readImageFacts(readOriginal(original)));
  expect(new Set(orientations.map((facts) => facts?.orientation)).size).toBe(8);
});
