import { createHash } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { createRgwBucket, rgw } from '../support/s3/rgw.ts';
import type { S3Bucket } from '../support/s3/s3-bucket.ts';
import { metricsSettings, withToken } from '../support/telemetry/prometheus-text.ts';
import { samples, useTestApp } from '../support/test-app.ts';

let bucket: S3Bucket;
beforeAll(async () => {
  bucket = await createRgwBucket('blocks');
});

const start = async () => {
  const app = await useTestApp({
    settings: {
      ...metricsSettings,
      BLOCKLIST: 's3',
      BLOCKLIST_S3_BUCKET: 'blocks',
      BLOCKLIST_S3_KEY: 'lists/blocks.jsonl',
      S3_ENDPOINT: rgw.endpoint,
    },
  });
  for (const key of ['icons/1/ab12', 'avatars/1/ab12', 'attachments/1/2/a.jpg']) {
    app.originals.put(key, samples.jpeg);
  }
  return app;
};

test('a block on Ceph is a 451 on both replicas within six seconds, under every key', async () => {
  const [first, second] = [await start(), await start()];
  const targets = [
    '/icons/1/ab12.webp?size=16',
    '/avatars/1/ab12.png?size=64',
    '/attachments/1/2/a.jpg',
    '/attachments/1/2/a.jpg?width=20',
  ];
  for (const url of targets) expect((await second.get(url)).statusCode).toBe(200);
  const change = async (app: typeof first, payload: object, method: 'POST' | 'DELETE' = 'POST') =>
    (await app.askAdmin('/blocks', { method, payload, headers: withToken })).json();
  const sha256 = [createHash('sha256').update(samples.jpeg).digest('hex')];
  expect(await change(first, { sha256 })).toEqual({ generation: 1 });
  for (const url of targets) {
    expect((await first.get(url)).statusCode).toBe(451);
    await expect.poll(async () => (await second.get(url)).statusCode, { timeout: 6_000 }).toBe(451);
  }
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, index) =>
      change(index % 2 === 0 ? first : second, { keys: [`emojis/${index + 1}`] }),
    ),
  );
  const generations = answers.map(({ generation }) => generation).sort((a, b) => a - b);
  expect(generations).toEqual(Array.from({ length: 12 }, (_, index) => index + 2));
  await expect
    .poll(async () => (await first.get('/emojis/12.webp')).statusCode, { timeout: 6_000 })
    .toBe(451);
  const third = await start();
  expect((await third.get('/emojis/12.webp')).statusCode).toBe(451);
  await bucket.remove('lists/blocks.jsonl');
  const { statusCode } = await first.askAdmin('/blocks', {
    ...{ method: 'POST', payload: { keys: ['emojis/99'] }, headers: withToken },
  });
  expect(statusCode).toBe(503);
  expect((await first.get('/emojis/12.webp')).statusCode).toBe(451);
});
