import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import { expect, test } from 'vitest';
import { useTestApp } from '../support/test-app.ts';
import { atScale } from '../support/test-scale.ts';
import { expectedVerdict } from '../surface/contract-oracle.ts';

/** URLs that libraries and clients request, with statuses derived from the contract, not from Darkroom. */
const [heading, ...rows] = readFileSync('fixtures/client-urls.tsv', 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => line.split('\t'));

/** A GIF of two simple frames, which renders fast. */
const EDGE_PX = 300;
const original = await sharp(
  Buffer.concat([Buffer.alloc(EDGE_PX ** 2), Buffer.alloc(EDGE_PX ** 2, 255)]),
  { raw: { width: EDGE_PX, height: 2 * EDGE_PX, channels: 1, pageHeight: EDGE_PX } },
)
  .gif()
  .toBuffer();

/** Keys of the originals by URL; default avatars have none. */
const servedKeys = new Set(
  rows.flatMap(([, , target = '', status]) => {
    const verdict = expectedVerdict(target);
    return status === '200' && verdict.kind === 'media' ? verdict.canonical.originKey : [];
  }),
);

const app = await useTestApp();
for (const key of servedKeys) app.originals.put(key, original);

test('the table of client URLs has the documented number of rows', () => {
  expect(heading?.join('|')).toBe(
    'client|resource|path|status by the contract (objects present)|remark',
  );
  const document = readFileSync('docs/compatibility.md', 'utf8');
  const [, documentedCount] = /`fixtures\/client-urls\.tsv` lists (\d+) URLs/.exec(document) ?? [];
  expect(rows).toHaveLength(Number(documentedCount));
});

/** Paths in the table of compatibility.md with their statuses: `…` is any rest of a path, `{…}` a segment. */
const documented = [
  ...readFileSync('docs/compatibility.md', 'utf8').matchAll(/^\| (`\/.*) \| .* \| (\d{3})/gm),
].flatMap(([, cell = '', status = '']) =>
  Array.from(cell.matchAll(/`(\/[^`]*)`/g), ([, path = '']) => ({ path, status })),
);

test.each(documented)('compatibility.md lists $path as $status', async ({ path, status }) => {
  for (const rest of ['1', '1.webp', '1/ab12.webp']) {
    const target = path.replace('…', rest).replaceAll(/\{\w+\}/g, '1');
    const { statusCode } = await app.server.inject(target);
    expect(statusCode, target).toBe(Number(status));
  }
});

test('compatibility.md lists every requested path that returns 404', () => {
  const patterns = documented.map(({ path }) => {
    const source = path
      .replaceAll('.', '\\.')
      .replaceAll('…', '.+')
      .replaceAll(/\{\w+\}/g, '[^/]+');
    return new RegExp(`^${source}$`);
  });
  const missing = rows.flatMap(([, , target = '', status]) => {
    const [path = ''] = target.split('?');
    return status !== '404' || patterns.some((each) => each.test(path)) ? [] : [path];
  });
  expect(missing).toEqual([]);
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
    const verdict = expectedVerdict(target);
    const image = await sharp(rawPayload).metadata();
    expect(headers['content-type']).toBe(`image/${image.format}`);
    if (verdict.kind !== 'media') {
      expect(verdict.kind).toBe('default avatar');
      expect(resource).toContain('default avatar');
      return;
    }
    const { format = 'gif', widthPx = EDGE_PX, animated, passthrough } = verdict.canonical;
    expect(image.format).toBe(format);
    expect(image.width).toBe(Math.min(widthPx, EDGE_PX));
    expect(image.pages ?? 1).toBe(animated || passthrough ? 2 : 1);
  },
);

test('the URLs of the table refer to these originals, and to no other object', () => {
  expect([...app.originals.reads.keys()].filter((key) => !servedKeys.has(key))).toEqual([]);
  expect(app.log.errors).toEqual([]);
});
