import { hash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { SendRequest } from '../support/http/http-client.ts';
import { createRgwBucket } from '../support/s3/rgw.ts';
import { SIGNING_KEY } from '../support/signed-urls.ts';
import { signedPathOf } from '../support/sites/external-app.ts';
import { useSiteServer } from '../support/sites/site-server.ts';
import { RELAY_KEY, uploadTarget } from '../support/uploads/relay-app.ts';
import { useCluster } from './cluster.ts';

/** Maximum time until all replicas follow. */
const FOLLOWED_MS = 6_000;

const picture = readFileSync('fixtures/originals/icons/1/ab12');

const site = await useSiteServer();
site.serve('/cat.jpg', picture, { etag: '"cat"' });
const list = `blocks-${randomUUID()}`;
await createRgwBucket(list);
const cluster = await useCluster({
  ...{ BLOCKLIST: 's3', BLOCKLIST_S3_BUCKET: list },
  ...{ RELAY_SIGNING_KEYS: RELAY_KEY, EXTERNAL_SIGNING_KEYS: SIGNING_KEY },
  ...{ EXTERNAL_ALLOWED_NETWORKS: '127.0.0.1', EXTERNAL_PORTS: String(site.port) },
});
for (const key of ['avatars/7/ab12', 'attachments/7/8/cat.jpg', 'icons/7/ab12']) {
  await cluster.originals.put(key, picture);
}

const external = `http://127.0.0.1:${site.port}/cat.jpg`;
/** The same bytes as an attachment, an avatar, an icon and external media: in two sizes and, if possible, unchanged. */
const targets = [
  ...[16, 80].flatMap((size) => [
    `/avatars/7/ab12.webp?size=${size}`,
    `/icons/7/ab12.webp?size=${size}`,
    `/attachments/7/8/cat.jpg?width=${size}`,
    signedPathOf(external, `width=${size}`),
  ]),
  '/attachments/7/8/cat.jpg',
  signedPathOf(external),
];

const requests = [{}, { headers: { range: 'bytes=0-99' } }, { method: 'HEAD' }] as const;

/** Returns the different statuses of all requests. */
const statusesOf = async (request: SendRequest): Promise<number[]> => {
  const responses = targets.flatMap((url) => requests.map((options) => request(url, options)));
  return [...new Set((await Promise.all(responses)).map(({ status }) => status))];
};

const upload = async (key: string): Promise<number> => {
  const url = `http://127.0.0.1:${cluster.nginx.port}${uploadTarget(key)}`;
  return (await fetch(url, { method: 'PUT', body: picture })).status;
};

test('content that is blocked by hash disappears everywhere within six seconds, and stays blocked', async () => {
  const [first, second, third] = cluster.replicas;
  const requests = [cluster.request, first.request, second.request, third.request];
  for (const request of requests)
    expect(Math.max(...(await statusesOf(request)))).toBeLessThan(300);
  expect(await upload('icons/8/ab')).toBe(200);

  expect(await first.run('block', hash('sha256', picture))).toBe('{"generation":1}\n');
  const sinceMs = Date.now();
  expect(await statusesOf(first.request)).toEqual([451]);
  for (const request of [second.request, third.request]) {
    await expect.poll(() => statusesOf(request), { timeout: FOLLOWED_MS }).toEqual([451]);
  }
  expect(Date.now() - sinceMs).toBeLessThan(FOLLOWED_MS);
  // nginx' own cache needs a purge of its own.
  cluster.nginx.purge('/');
  expect(await statusesOf(cluster.request)).toEqual([451]);
  expect(await upload('icons/9/ab')).toBe(403);
  for (const request of requests.slice(1))
    expect((await request('/icons/9/ab.webp')).status).toBe(404);

  // Other media are served, also after a restart.
  await second.stop();
  await second.start();
  expect(await statusesOf(second.request)).toEqual([451]);
  expect((await second.request('/avatars/1/ab12.webp?size=32')).status).toBe(200);
});

test('a purge by command removes renderings from the replica and the store', async () => {
  const [first] = cluster.replicas;
  expect((await first.request('/avatars/2/cd34.webp?size=32')).status).toBe(200);
  const purged = JSON.parse(await first.run('purge', 'avatars/2/cd34'));
  expect(purged.removed.memory).toBe(1);
});
