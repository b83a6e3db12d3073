import { expect, test } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import { metricsSettings, withToken } from '../../support/telemetry/prometheus-text.ts';
import { samples, useTestApp } from '../../support/test-app.ts';

/** More than the maximum number of remembered rejections. */
const FAILURES = 10_100;

test('failed metadata requests do not evict remembered rejections of media', {
  timeout: 300_000,
}, async () => {
  const render = () => Promise.reject(new MediaError('TRANSFORM_TIMEOUT'));
  const app = await useTestApp({
    settings: { ...metricsSettings, CACHE_ORIGINALS_BYTES: '0' },
    renderer: { render },
  });
  app.originals.put('icons/1/ab12', samples.text);
  const countReads = async () => {
    expect((await app.get('/icons/1/ab12.webp')).statusCode).toBe(415);
    return app.originals.reads.get('icons/1/ab12');
  };
  const reads = await countReads();
  const statuses = new Set<number>();
  for (let index = 1; index <= FAILURES; index += 1) {
    app.originals.put(`emojis/${index}`, samples.png);
    const { statusCode } = await app.requestAdmin(`/metadata/emojis/${index}`, {
      headers: withToken,
    });
    statuses.add(statusCode);
    app.originals.delete(`emojis/${index}`);
  }
  expect([...statuses]).toEqual([504]);
  expect(await countReads()).toBe(reads);
});
