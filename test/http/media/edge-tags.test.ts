import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { useEdgeWorld } from '../../support/edges/edge-app.ts';
import type { EdgeName } from '../../support/edges/edge-server.ts';
import { enforced, signedPath } from '../../support/signed-urls.ts';
import { samples } from '../../support/test-app.ts';

const headers = ['cache-tag', 'surrogate-key', 'cdn-tag'];

const edges: readonly (readonly [EdgeName, header: string, separator: string])[] = [
  ['cloudflare', 'cache-tag', ','],
  ['fastly', 'surrogate-key', ' '],
  ['bunny', 'cdn-tag', ','],
  ['cloudfront', 'cache-tag', ','],
];

/** What the tags of a key are made of: itself, and its folders. */
const partsOf: Readonly<Record<string, readonly string[]>> = {
  '/icons/1/ab.webp?size=16': ['icons/1/ab', 'icons/', 'icons/1/'],
  '/icons/1/a_ab.gif?size=32': ['icons/1/ab', 'icons/', 'icons/1/'],
  '/guilds/1/users/2/avatars/ab.webp': [
    'guilds/1/users/2/avatars/ab',
    'guilds/',
    'guilds/1/',
    'guilds/1/users/',
    'guilds/1/users/2/',
    'guilds/1/users/2/avatars/',
  ],
  '/emojis/7.webp': ['emojis/7', 'emojis/'],
  '/attachments/1/2/photo.png': [
    'attachments/1/2/photo.png',
    'attachments/',
    'attachments/1/',
    'attachments/1/2/',
  ],
};

async function useApp(name: EdgeName, settings = {}) {
  const world = await useEdgeWorld(name, { settings });
  const app = await world.open();
  for (const [key = ''] of Object.values(partsOf)) app.originals.put(key, samples.png);
  const secret = (await world.objects.read('tag-key'))?.bytes ?? new Uint8Array();
  const tagOf = (text: string): string =>
    createHmac('sha256', secret).update(text).digest('hex').slice(0, 16);
  return { app, tagOf };
}

describe.each(edges)('behind %s', (name, header, separator) => {
  test('media have tags: of the original, and of each folder of its key', async () => {
    const { app, tagOf } = await useApp(name);
    for (const [url, parts] of Object.entries(partsOf)) {
      const expected = parts.map(tagOf).join(separator);
      // Rendered, from memory, and passed on.
      for (let time = 0; time < 2; time += 1) {
        const response = await app.get(url);
        expect([response.statusCode, response.headers[header]], url).toEqual([200, expected]);
        for (const other of headers.filter((each) => each !== header)) {
          expect(response.headers).not.toHaveProperty(other);
        }
      }
    }
  });
});

test.each([
  ['/icons/1/ab.webp?size=16', {}, 200, 3],
  ['/icons/1/ab.webp?size=16', { range: 'bytes=0-3' }, 206, 3],
  ['/icons/1/ab.webp?size=16', { 'if-none-match': '*' }, 304, 3],
  ['/attachments/1/2/photo.png', { range: 'bytes=0-3' }, 206, 4],
  ['/attachments/1/2/photo.png', { 'if-none-match': '*' }, 304, 4],
  ['/icons/1/missing.webp', {}, 404, 3],
  ['/attachments/1/2/missing.png', {}, 404, 4],
  ['/icons/1/ab.webp?size=7', {}, 400, 0],
  ['/icons/1/ab.webp?size=16', { range: 'bytes=9999999-' }, 416, 0],
  ['/icons/1/text.webp', {}, 415, 0],
  ['/avatars/3.png', {}, 200, 0],
  ['/avatars/9.png', {}, 404, 0],
  ['/nothing', {}, 404, 0],
])('%s with %j is a %i with %i tags', async (url, asked, status, count) => {
  const { app } = await useApp('fastly');
  app.originals.put('icons/1/text', samples.text);
  await app.get('/icons/1/ab.webp?size=16');
  for (const method of 'range' in asked ? ['GET'] : ['GET', 'HEAD']) {
    const response = await app.send(method, url, asked);
    expect(response.status).toBe(status);
    expect(response.headers['surrogate-key']?.split(' ') ?? []).toHaveLength(count);
  }
});

test('a refused URL has the tags of a missing attachment', async () => {
  const { app, tagOf } = await useApp('fastly', enforced);
  const key = 'attachments/1/2/photo.png';
  const signed = signedPath(key, 1_750_000_000 + 3_600);
  const expected = (partsOf[`/${key}`] ?? []).map(tagOf).join(' ');
  const whole = await app.get(signed);
  expect([whole.statusCode, whole.headers['surrogate-key']]).toEqual([200, expected]);
  const refused = await app.get(`/${key}`);
  expect([refused.statusCode, refused.headers['surrogate-key']]).toEqual([404, expected]);
});

test('replicas that start at once make one secret, which later ones share', async () => {
  const { open, objects } = await useEdgeWorld('cloudflare');
  objects.writeMs = 20;
  const apps = await Promise.all([open(), open(), open()]);
  apps.push(await open());
  const tags = await Promise.all(apps.map((app) => app.get('/icons/1/missing.webp')));
  expect(new Set(tags.map((each) => each.headers['cache-tag'])).size).toBe(1);
  expect((await objects.read('tag-key'))?.bytes.length).toBe(32);
});
