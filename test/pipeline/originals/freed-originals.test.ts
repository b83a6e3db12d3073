import { expect, test } from 'vitest';
import { defer, settle } from '../../support/deferred.ts';
import { samples, type TestAppOptions, useTestApp } from '../../support/test-app.ts';

const uncached = { CACHE_MEMORY_BYTES: '0', CACHE_ORIGINALS_BYTES: '0' };

/** Starts an app whose originals have buffers of their own, and collects the originals that it renders. */
async function useRenders(
  options: TestAppOptions = { settings: uncached },
  { isExclusive = true, spareBytes = 0 } = {},
) {
  const rendered: Uint8Array[] = [];
  const app = await useTestApp({
    renderer: {
      render: async (original) => {
        if (original instanceof Uint8Array) rendered.push(original);
        return samples.webp;
      },
    },
    ...options,
  });
  app.originals.put('icons/1/ab', samples.jpeg);
  app.originals.put('icons/1/cd', samples.png);
  app.originals.alter = (opened, key) => {
    const bytes = key === 'icons/1/ab' ? samples.jpeg : samples.png;
    const buffer = Buffer.allocUnsafeSlow(bytes.length + spareBytes).fill(bytes);
    const body = buffer.subarray(0, bytes.length);
    return { ...opened, body, isExclusive };
  };
  return { ...app, rendered, lengths: () => rendered.map(({ length }) => length) };
}

test('frees an original after its last render', async () => {
  const { get, lengths } = await useRenders();
  expect((await get('/icons/1/ab.webp?size=16')).statusCode).toBe(200);
  await expect.poll(lengths).toEqual([0]);
});

test('does not free an original while another render uses it', async () => {
  const released = defer<void>();
  const seen: Uint8Array[] = [];
  const { get } = await useRenders({
    settings: { ...uncached, WORKERS: '2' },
    renderer: {
      render: async (original, { size }) => {
        if (original instanceof Uint8Array) seen.push(original);
        if (size.widthPx === 32) await released.promise;
        return samples.webp;
      },
    },
  });
  const second = get('/icons/1/ab.webp?size=32');
  expect((await get('/icons/1/ab.webp?size=16')).statusCode).toBe(200);
  await settle();
  expect(seen.map(({ length }) => length)).toEqual([samples.jpeg.length, samples.jpeg.length]);
  expect(seen[0]?.buffer).toBe(seen[1]?.buffer);
  released.resolve();
  await second;
  await expect.poll(() => seen.map(({ length }) => length)).toEqual([0, 0]);
});

test.each([
  ['is cached', { settings: {} }, {}],
  ['is in a buffer of the source', { settings: uncached }, { isExclusive: false }],
  ['is a part of a buffer', { settings: uncached }, { spareBytes: 1 }],
])('does not free an original that %s', async (_, options, body) => {
  const { get, lengths } = await useRenders(options, body);
  await get('/icons/1/ab.webp?size=16');
  await settle();
  expect(lengths()).toEqual([samples.jpeg.length]);
});

test('does not free an original whose render has failed', async () => {
  const seen: Uint8Array[] = [];
  const { get } = await useRenders({
    settings: uncached,
    renderer: {
      render: async (original) => {
        if (original instanceof Uint8Array) seen.push(original);
        throw new Error('a bug');
      },
    },
  });
  expect((await get('/icons/1/ab.webp?size=16')).statusCode).toBe(500);
  await settle();
  expect(seen.map(({ length }) => length)).toEqual([samples.jpeg.length]);
});

test('sends an unmodified original completely', async () => {
  const { get, rendered } = await useRenders({ settings: { CACHE_ORIGINALS_BYTES: '0' } });
  for (let repetition = 0; repetition < 2; repetition += 1) {
    const { rawPayload, statusCode } = await get('/icons/1/cd.png?quality=lossless');
    expect(statusCode).toBe(200);
    expect(rawPayload.equals(samples.png)).toBe(true);
  }
  expect(rendered).toEqual([]);
});
