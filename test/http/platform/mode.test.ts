import { expect, test } from 'vitest';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';
import { enforced, SIGNING_KEY, signatureOf } from '../../support/signed-urls.ts';
import { SITE, signedPathOf, useExternalApp } from '../../support/sites/external-app.ts';
import { samples, shareTestApp, useTestApp } from '../../support/test-app.ts';

// Contract §14 over HTTP. test/contract/leniency.test.ts and test/contract/signing check the meaning of requests.

const settings = { COMPATIBILITY: 'fluxer' };
const app = shareTestApp({ settings });

test('saves a download under its name, and shares the rendering of the inline response', async () => {
  const key = 'attachments/x/y/z/photo.png';
  app.originals.put(key, samples.png);
  app.originals.put('avatars/8/ab', samples.png);
  const { renders } = app.renderer;
  for (const _ of ['', 'again']) {
    for (const [target, disposition] of [
      [`/${key}`, 'inline; filename="photo.png"'],
      [`/${key}?download=yes`, 'inline; filename="photo.png"'],
      [`/${key}?download=TRUE`, 'attachment; filename="photo.png"'],
      [`/${key}?width=20&format=WEBP&download=true`, 'attachment; filename="photo.webp"'],
      [`/${key}?width=20&format=WEBP`, 'inline; filename="photo.webp"'],
      ['/avatars/8/ab.webp?download=true', 'attachment'],
      ['/avatars/8/ab.webp', undefined],
    ] as const) {
      const { headers } = await app.get(target);
      expect(headers['content-disposition'], target).toBe(disposition);
    }
  }
  expect(app.renderer.renders - renders).toBe(2);
});

test('a signature covers the complete key of an attachment, regardless of the encoding of its slashes', async () => {
  const now = Date.UTC(2026, 0, 1) / 1000;
  const { originals, get } = await useTestApp({
    settings: { ...settings, ...enforced },
    wallClock: () => now * 1000,
  });
  const key = 'attachments/a/b/c/photo.png';
  originals.put(key, samples.png);
  const query = signatureOf(key, now + 3_600, SIGNING_KEY);
  for (const path of [key, 'attachments/a%2Fb/c/photo.png', 'attachments/a/b%2fc%2Fphoto.png']) {
    expect((await get(`/${path}?${query}&width=5000`)).statusCode).toBe(200);
    expect((await get(`/${path}?width=5000`)).statusCode).toBe(404);
  }
  expect((await get(`/attachments/a/b/photo.png?${query}`)).statusCode).toBe(404);
});

const KEY = 'attachments/1400000000000000000/1500000000000000000/naïve cat.png';
const signatures = {
  expires:
    'ex=69f7801c&is=69f62e9c&hm=5fdbabbacd0073fae47836355f022c2dd138e77057b120813c987cf20541d5dd',
  'never expires':
    'ex=0&is=69f62e9c&hm=d97b175f63a9063a0e6f89145b222777ac403e584f7f3384523cc00b2b479de7&uc=dp',
};

// URLs of the platform, whose signer decodes the signing key from base64.
test.each([
  ['expires', 'base64:', 0x69f7801c - 1, 200],
  ['expires', 'base64:', 0x69f7801c, 404],
  ['expires', '', 0x69f7801c - 1, 404],
  ['never expires', 'base64:', 4_000_000_000, 200],
] as const)(
  "accepts or rejects a URL of the platform's signer that %s, with a key '%s…', at %i: %i",
  async (name, form, at, status) => {
    const { get, originals } = await useTestApp({
      settings: {
        ATTACHMENT_SIGNING: 'enforce',
        ATTACHMENT_SIGNING_DOMAIN: 'fluxer-attachment-url-v1',
        ATTACHMENT_SIGNING_KEYS: `${form}O0Jjj3LjI5NdO+kLw7XCaNo6cQtpALQD72QHlCwiCHE=`,
      },
      wallClock: () => at * 1000,
    });
    originals.put(KEY, samples.png);
    const path = KEY.split('/').map(encodeURIComponent).join('/');
    expect((await get(`/${path}?${signatures[name]}`)).statusCode).toBe(status);
  },
);

// The platform stores originals without Darkroom, so a cached 404 must expire soon.
test.each([
  [settings, 'no-store', 2_000],
  [{ ...settings, NOT_FOUND_MAX_AGE_SECONDS: '1' }, 'no-store', 1_000],
  [{}, 'public, max-age=30', 30_000],
])('with %j, missing media are %s and remembered for %i ms', async (settings, caching, forMs) => {
  const { get, originals, clock } = await useTestApp({ settings });
  const url = '/avatars/1/ab12.png';
  const missing = await get(url);
  expect([missing.statusCode, missing.headers['cache-control']]).toEqual([404, caching]);
  originals.put('avatars/1/ab12', samples.png);
  clock.advance(forMs - 1);
  expect((await get(url)).statusCode).toBe(404);
  clock.advance(1);
  expect((await get(url)).statusCode).toBe(200);
});

test.each([
  // An unsigned URL looks like missing media.
  ['/attachments/1/2/a.png', 'no-store'],
  ['/nowhere', 'public, max-age=30'],
])('returns a 404 for %s, cached as %s', async (url, caching) => {
  const { get } = await useTestApp({ settings: { ...settings, ...enforced } });
  const { statusCode, headers } = await get(url);
  expect([statusCode, headers['cache-control']]).toEqual([404, caching]);
});

test('fetches a URL from a path that is percent-encoded twice, with the same cache entry', async () => {
  const { site, requestTarget, renderer } = await useExternalApp({ settings });
  const keys = new SigningKeys([SIGNING_KEY]);
  const sign = (target: string) => `/external/${keys.sign(target, 'base64url')}/${target}`;
  const host = `${SITE}:${site.port}`;
  const path = '/a%20b/c:d@2x,1%25.png?w=1&u=%2Fx';
  site.handlers.set('/a%20b/c:d@2x,1%25.png', (request, response) => {
    if (request.url === path) response.end(samples.png);
    else response.writeHead(404).end();
  });
  const encoded = 'a%2520b/c%3Ad%402x%2C1%2525.png';
  const targets = [
    `%3Fw%3D1%26u%3D%252Fx/http/${host}/${encoded}`,
    `w%3D1%26u%3D%252Fx/http/${host}/${encoded}`,
    `http/${host}/${encoded}%3Fw%3D1%26u%3D%252Fx`,
  ];
  for (const each of [...targets.map(sign), signedPathOf(`http://${host}${path}`)]) {
    const { status, header } = await requestTarget(`${each}?width=9&format=WEBP`);
    expect([status, header('content-type')], each).toEqual([200, 'image/webp']);
  }
  expect(site.requests.map(({ url }) => url)).toEqual([path]);
  expect(renderer.renders).toBe(1);
  expect((await requestTarget(sign(`http/${host}/a%20b.png`))).status).toBe(404);
  expect(site.requests.at(-1)?.url).toBe('/a%20b.png');
});
