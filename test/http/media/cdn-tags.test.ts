import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { externalKeyOf } from '../../../src/contract/signing/external-path.ts';
import { cdnSettings, useCdnApp, useCdnReplicas } from '../../support/cdn/cdn-app.ts';
import type { CdnName } from '../../support/cdn/cdn-server.ts';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { enforced, signedPath } from '../../support/signed-urls.ts';
import { signedPathOf, useExternalApp } from '../../support/sites/external-app.ts';
import { samples } from '../../support/test-app.ts';

/** Texts from which the tags of a key are made: the key, and its directories. */
const partsOf: Readonly<Record<string, readonly string[]>> = {
  '/icons/1/ab.webp?size=16': ['icons/1/ab', 'icons/', 'icons/1/'],
  '/icons/1/a_ab.gif?size=32': ['icons/1/ab', 'icons/', 'icons/1/'],
  '/guilds/1/users/2/avatars/ab.webp': [
    ...['guilds/1/users/2/avatars/ab', 'guilds/', 'guilds/1/', 'guilds/1/users/'],
    ...['guilds/1/users/2/', 'guilds/1/users/2/avatars/'],
  ],
  '/emojis/7.webp': ['emojis/7', 'emojis/'],
  '/attachments/1/2/photo.png': [
    ...['attachments/1/2/photo.png', 'attachments/', 'attachments/1/', 'attachments/1/2/'],
  ],
};

async function useApp(name: CdnName, settings = {}) {
  const { app, objects } = await useCdnApp(name, { settings });
  for (const [key = ''] of Object.values(partsOf)) app.originals.put(key, samples.png);
  const secret = (await objects.read('tag-key'))?.bytes ?? new Uint8Array();
  const tagOf = (text: string): string =>
    createHmac('sha256', secret).update(text).digest('hex').slice(0, 16);
  return { app, tagsOf: (url: string) => (partsOf[url] ?? []).map(tagOf) };
}

test.each([
  ['cloudflare', 'cache-tag', ','],
  ['fastly', 'surrogate-key', ' '],
  ['bunny', 'cdn-tag', ','],
  ['cloudfront', 'cache-tag', ','],
] as const)(
  'behind %s, media have tags in %s for the original and each directory of its key',
  async (name, header, separator) => {
    const { app, tagsOf } = await useApp(name);
    for (const url of Object.keys(partsOf)) {
      for (let time = 0; time < 2; time += 1) {
        const { headers, statusCode } = await app.get(url);
        const tags = ['cache-tag', 'surrogate-key', 'cdn-tag'].filter((each) => each in headers);
        const expected = [200, [header], tagsOf(url).join(separator)];
        expect([statusCode, tags, headers[header]], url).toEqual(expected);
      }
    }
  },
);

test('only successful and 404 responses about an original have tags', async () => {
  const { app } = await useApp('fastly');
  app.originals.put('icons/1/text', samples.text);
  await app.get('/icons/1/ab.webp?size=16');
  for (const [url, requestHeaders, ...expected] of [
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
  ] as const) {
    for (const method of 'range' in requestHeaders ? ['GET'] : ['GET', 'HEAD']) {
      const { status, headers } = await app.send(method, url, requestHeaders);
      const tags = headers['surrogate-key']?.split(' ') ?? [];
      expect([status, tags.length], `${method} ${url}`).toEqual(expected);
    }
  }
});

test('media after a redirect of another site also have the tags of the requested URL', async () => {
  const key = 'attachments/1/2/photo.png';
  const CDN = 'https://cdn.example';
  const objects = new MemoryObjects();
  const cdn = { ...cdnSettings('fastly', { url: 'http://127.0.0.1:9' }), PUBLIC_URLS: `${CDN}/` };
  const app = await useExternalApp({ settings: cdn, objects });
  const secret = (await objects.read('tag-key'))?.bytes ?? new Uint8Array();
  const tagOf = (text: string): string =>
    createHmac('sha256', secret).update(text).digest('hex').slice(0, 16);
  app.originals.put(key, samples.png);
  const ownTags = (partsOf[`/${key}`] ?? []).map(tagOf);
  const tagsOf = async (target: string) => {
    const { status, header } = await app.requestTarget(target);
    return [status, header('surrogate-key').split(' ').sort()];
  };
  for (const [path, location, status] of [
    ['/a', `/${key}`, 200],
    ['/b', `/${key}?format=webp&width=8`, 200],
    ['/c', '/attachments/1/2/missing.png', 404],
  ] as const) {
    app.site.redirect(path, `${CDN}${location}`);
    const parts = status === 404 ? [tagOf(location.slice(1)), ...ownTags.slice(1)] : ownTags;
    const url = app.urlOf(path);
    const both = [...new Set([...parts, tagOf(externalKeyOf(url)), tagOf('external/')])].sort();
    // Regardless of the URL for which the rendering was made.
    for (const [target, tags] of [
      [signedPathOf(url), both],
      [location, [...parts].sort()],
      [signedPathOf(url), both],
    ] as const) {
      expect(await tagsOf(target), target).toEqual([status, tags]);
    }
  }
});

test('a rejected URL has the tags of a missing attachment', async () => {
  const { app, tagsOf } = await useApp('fastly', enforced);
  const key = 'attachments/1/2/photo.png';
  const expected = tagsOf(`/${key}`).join(' ');
  for (const [url, status] of [
    [signedPath(key, 1_750_000_000 + 3_600), 200],
    [`/${key}`, 404],
  ] as const) {
    const { statusCode, headers } = await app.get(url);
    expect([statusCode, headers['surrogate-key']]).toEqual([status, expected]);
  }
});

test('replicas that start concurrently create one secret, which later ones share', async () => {
  const { open, objects } = await useCdnReplicas('cloudflare');
  objects.writeMs = 20;
  const apps = await Promise.all([open(), open(), open()]);
  apps.push(await open());
  const tags = await Promise.all(apps.map((app) => app.get('/icons/1/missing.webp')));
  expect(new Set(tags.map((each) => each.headers['cache-tag'])).size).toBe(1);
  expect((await objects.read('tag-key'))?.bytes.length).toBe(32);
});
