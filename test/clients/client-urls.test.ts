import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import { expect, test } from 'vitest';
import { readSample, useTestApp } from '../support/test-app.ts';
import { atScale } from '../support/test-scale.ts';
import { judge } from '../surface/contract-oracle.ts';

const readTable = (name: string): string[][] =>
  readFileSync(`fixtures/${name}.tsv`, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t'));

/** URLs that libraries and clients ask for; their statuses were worked out from the contract, not from Darkroom. */
const [heading, ...rows] = readTable('client-urls');
const sampleKeys = readTable('originals-index').map(([key]) => key);

/** Finds the key of the sample behind a target without the code under test; default avatars have none. */
function sampleKeyOf(target: string): string | undefined {
  const path = decodeURIComponent(target.replace(/\?.*/, '')).slice(1);
  const asset = path.replace(/\.\w+$/, '').replace(/\/a_(?=\w+$)/, '/'); // `a_` is not part of a key
  return sampleKeys.find((key) => key === path || key === asset);
}

const servedKeys = new Set(
  rows.flatMap(([, , target = '', status]) =>
    status === '200' ? (sampleKeyOf(target) ?? []) : [],
  ),
);

const app = await useTestApp();
for (const key of servedKeys) app.originals.put(key, readSample(key));

test('the table of client URLs is whole', () => {
  expect(heading?.join('|')).toBe(
    'client|resource|path|status by the contract (objects present)|remark',
  );
  const document = readFileSync('docs/compatibility.md', 'utf8');
  const [, told] = /`fixtures\/client-urls\.tsv` lists (\d+) URLs/.exec(document) ?? [];
  expect(rows).toHaveLength(Number(told));
});

test.each(rows.filter((_, index) => index % atScale(6, 1) === 0))(
  '%s, %s, %s: %s',
  async (_client, resource, target = '', status, remark) => {
    const { statusCode, headers, rawPayload } = await app.server.inject(target);
    expect(statusCode).toBe(Number(status));
    if (status !== '200') {
      const path = remark?.includes(': size ') ? 'size' : 'ext';
      expect(JSON.parse(rawPayload.toString())).toMatchObject(
        status === '404'
          ? { code: 'NOT_FOUND' }
          : { code: 'INVALID_FORM_BODY', errors: [{ path, message: expect.any(String) }] },
      );
      return;
    }
    const verdict = judge(target);
    const key = sampleKeyOf(target);
    expect(verdict.kind).toBe(key === undefined ? 'default avatar' : 'media');
    if (key === undefined) expect(resource).toContain('default avatar');
    const image = await sharp(rawPayload).metadata();
    expect(headers['content-type']).toBe(`image/${image.format}`);
    if (key === undefined || verdict.kind !== 'media') return;
    const { format, widthPx, animated } = verdict.canonical;
    const original = await sharp(readSample(key)).metadata();
    expect(image.format).toBe(format ?? original.format);
    expect(image.width).toBe(Math.min(widthPx ?? Number.POSITIVE_INFINITY, original.width));
    expect(image.pages ?? 1).toBe(animated ? (original.pages ?? 1) : 1);
  },
);

test('the URLs of the table lead to these originals, and to no other object', () => {
  expect([...app.originals.reads.keys()].filter((key) => !servedKeys.has(key))).toEqual([]);
  expect(app.log.errors).toEqual([]);
});
