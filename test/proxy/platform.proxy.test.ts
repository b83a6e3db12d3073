import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ClientResponse } from '../support/http/http-client.ts';
import '../support/property-seed.ts';
import { enforced, signatureOf } from '../support/signed-urls.ts';
import { signedPathOf } from '../support/sites/external-app.ts';
import { readSample, samples } from '../support/test-app.ts';
import { atScale } from '../support/test-scale.ts';
import { useSiteStack } from './stack.ts';

// The files of deploy/nginx before Darkroom in the platform's place (contract §14).

const OWN = 'https://cdn.example/media';
const key = 'attachments/1/1/country-lane.jpg';
const later = Math.floor(Date.now() / 1000) + 3_600;
const signature = signatureOf(key, later);
const settings = { COMPATIBILITY: 'fluxer', PUBLIC_URLS: OWN };
const stack = await useSiteStack(settings);
const enforcing = await useSiteStack({
  ...settings,
  ...enforced,
});
for (const { site } of [stack, enforcing]) {
  site.serve('/cat.png', samples.png);
  site.serve('/dog.gif', samples.animatedGif);
}
for (const { put } of [stack, enforcing]) {
  await put('themes/midnight.css', Buffer.from('body { color: teal }'));
  await put('entrance-sounds/1/ab12.mp3', readSample('attachments/1/17/jingle.mp3'));
  await put('branding/acme/ab12', readSample('icons/1/ab12'));
  await put('attachments/a/b/c/photo.jpg', readSample(key));
}

/** All that a client can tell one response from another by. */
function essence({ status, header, body }: ClientResponse): object {
  const names = ['content-type', 'content-disposition', 'etag', 'content-range', 'cache-control'];
  // A lifetime that ends with a signature is another one in each second.
  const shown = names.map((name) => header(name).replace(/max-age=3\d{3}$/, 'max-age=…'));
  return [status, ...shown, body.toString('base64')];
}

const ofSite = [stack.externalPath('/cat.png'), stack.externalPath('/dog.gif')];
const owned = [
  '/avatars/2/cd34.webp',
  `/${key}`,
  '/emojis/11.gif',
  `/${key}?width=30`,
  '/themes/no',
];
const paths = [
  ...['/avatars/2/cd34.webp', '/avatars/2/a_cd34.PNG', '/icons/2/cd34.avif', '/emojis/11.gif'],
  ...['/stickers/1.json', '/banners/2/cd34.jpg', '/branding/acme/ab12.webp', '/avatars/3.png'],
  ...[
    `/${key}`,
    '/attachments/a%2Fb/c/photo.jpg',
    '/attachments/a/b/c/photo.jpg',
    '/avatars/9.PNG',
  ],
  ...[
    '/attachments/1/14/romeo.txt',
    '/attachments/a//b',
    '/attachments/none',
    '/themes/midnight.css',
  ],
  ...['/entrance-sounds/1/ab12.mp3', '/guilds/1/users/2/avatars/a_cd34.webp', '/emojis/none.png'],
  ...ofSite,
  ...owned.map((path) => signedPathOf(OWN + path)),
];
const values: Readonly<Record<string, readonly string[]>> = {
  size: ['1', '129', '640', 'x', ''],
  width: ['20', '40', '5000', '16385', 'x'],
  height: ['20', '9000'],
  format: ['webp', 'PNG', 'gif', 'auto'],
  fmt: ['webp', 'PNG', 'gif', 'auto'],
  quality: ['low', 'lossless', 'auto'],
  animated: ['true', '1', 'false', 'TRUE'],
  download: ['true', '1', 'false'],
  // Names that are none, or are spelled otherwise.
  Size: ['640'],
  v: ['1'],
  'f%6Dt': ['gif'],
  downl0ad: ['true'],
};
const pairs = fc
  .constantFrom(...Object.keys(values))
  .chain((name) => fc.constantFrom(...(values[name] ?? [])).map((value) => `${name}=${value}`));
const targets = fc
  .tuple(fc.constantFrom(...paths), fc.array(pairs, { maxLength: 4 }))
  .map(([path, query]) => (query.length === 0 ? path : `${path}?${query.join('&')}`));
/** Requests of which none may be taken for another. */
const alike = [
  ...['fmt=gif', 'format=webp', 'fmt=webp', 'download=true', 'size=300', ''].map(
    (query) => `/avatars/2/cd34.png?${query}`,
  ),
  ...['fmt=gif&width=9', 'width=9', 'download=1', 'format=gif&width=9&download=1', ''].map(
    (query) => `/${key}?${query}`,
  ),
];
const ranges = fc.constantFrom(undefined, undefined, undefined, 'bytes=3-9', 'bytes=-7');

test('all that is asked through nginx is told as Darkroom tells it, whatever was asked before', async () => {
  let hits = 0;
  await fc.assert(
    fc.asyncProperty(targets, ranges, async (target, Range) => {
      const headers = Range === undefined ? {} : { Range };
      const direct = essence(await stack.askDirectly(target, { headers }));
      for (const round of ['cold', 'warm']) {
        const proxied = await stack.ask(target, { headers });
        hits += Number(proxied.nginx === 'hit');
        expect(essence(proxied), `${round} ${target} ${Range}`).toEqual(direct);
      }
    }),
    {
      numRuns: atScale(400, 2_000),
      examples: alike.map((target) => [target, undefined]),
      endOnFailure: true,
    },
  );
  expect(hits).toBeGreaterThan(100);
}, 300_000);

test.each([
  ['/icons/1/ab12.webp?size=64', '/icons/1/ab12.webp?v=1&size=64&utm=2'],
  [`/${key}?width=64`, `/${key}?size=128&width=64`],
  ['/avatars/4.png', '/avatars/4.png?fmt=gif&fmt=png&size=1'],
])('a request for %s is a hit for %s', async (first, second) => {
  await stack.ask(first);
  expect(await stack.ask(second)).toMatchObject({ status: 200, nginx: 'hit' });
});

test('nginx fetches a download of an original in slices', async () => {
  const target = '/attachments/3/1/film.bin';
  await stack.put(target, Buffer.alloc(3 * 1024 * 1024, 'slices'));
  const headers = { Range: 'bytes=5-9' };
  expect((await stack.ask(`${target}?download=true`, { headers })).status).toBe(206);
  expect(stack.relay.requests.map(({ headers }) => headers.range)).toEqual(['bytes=0-1048575']);
});

test('nginx asks Darkroom again for what was missing', async () => {
  const path = '/attachments/new/photo.jpg?width=20';
  expect((await stack.ask(path)).status).toBe(404);
  await stack.put('attachments/new/photo.jpg', readSample(key));
  await expect
    .poll(async () => (await stack.ask(path)).status, { interval: 500, timeout: 10_000 })
    .toBe(200);
});

describe('an own attachment as external media, where signatures are demanded', () => {
  const inner = signedPathOf(`${OWN}/${key}?${signature}`);
  const outer = signedPathOf(`${OWN}/${key}`);

  test('has the response of its own signature, inside or outside the external path, and of no other', async () => {
    const opaque = signedPathOf(`${OWN}/${key}?${signature}&width=20`);
    const good = [inner, opaque, `${outer}?${signature}`, `${outer}?width=20&${signature}`];
    const bad = [outer, `${outer}?${signature.replace('&hm=', '&hm=0')}`, `${outer}?width=20`];
    for (const _ of ['cold', 'warm']) {
      for (const target of good) {
        expect((await enforcing.ask(target)).status, target).toBe(200);
        const headers = { Range: 'bytes=2-5' };
        const part = await enforcing.ask(target, { headers });
        expect(part.status, target).toBe(206);
      }
      for (const target of bad) expect((await enforcing.ask(target)).status, target).toBe(404);
    }
    expect((await enforcing.ask(inner)).nginx).toBe('hit');
  });

  test('appears in no log with its signature', async () => {
    const hm = /hm=(\w+)/.exec(signature)?.[1] ?? '';
    const encoded = Buffer.from(signature).toString('base64url').slice(4, 40);
    const wrapped = signedPathOf(`${OWN}${inner}`);
    for (const target of [inner, wrapped, `${outer}?${signature}`, `${outer}?h%6D=${hm}`]) {
      await enforcing.ask(target);
    }
    const lines = (): string => enforcing.nginx.accessLog();
    await expect.poll(lines, { timeout: 5_000 }).toContain('/external/[redacted] HTTP/1.1');
    for (const secret of [hm, encoded]) {
      expect(lines() + enforcing.nginx.log()).not.toContain(secret);
    }
  });

  test('is not served after its signature has expired, even while Darkroom is down', async () => {
    const ending = signatureOf(key, Math.floor(Date.now() / 1000) + 4);
    const urls = [
      signedPathOf(`${OWN}/${key}?${ending}`),
      `${outer}?${ending}`,
      `${outer}?${ending}&width=21`,
    ];
    for (const url of urls) {
      expect((await enforcing.ask(url)).status).toBe(200);
      expect(await enforcing.ask(url)).toMatchObject({ status: 200, nginx: 'hit' });
    }
    await sleep(5_000);
    for (const url of urls) expect((await enforcing.ask(url)).status).toBe(404);
    const last = signatureOf(key, Math.floor(Date.now() / 1000) + 3);
    const url = signedPathOf(`${OWN}/${key}?${last}`);
    expect((await enforcing.ask(url)).status).toBe(200);
    await enforcing.stopDarkroom();
    expect((await enforcing.ask(url)).status).toBe(200);
    await sleep(4_000);
    expect((await enforcing.ask(url)).status).toBe(502);
  }, 60_000);
});
