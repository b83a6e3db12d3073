import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ClientResponse } from '../support/http/http-client.ts';
import '../support/property-seed.ts';
import { signedPathOf } from '../support/sites/external-app.ts';
import { readSample, samples } from '../support/test-app.ts';
import { atScale } from '../support/test-scale.ts';
import { weighted } from '../surface/contract-requests.ts';
import { sign } from '../surface/signed-oracle.ts';
import { externalPaths, signedAttachments } from '../surface/signed-requests.ts';
import { targets } from '../surface/surface-requests.ts';
import { startSurfaceSite } from '../surface/surface-site.ts';
import { CHANGED_AT, createSurfaceStorage } from '../surface/surface-storage.ts';
import { useSiteStack, useStack } from './stack.ts';

const storage = await createSurfaceStorage();
const site = await startSurfaceSite(storage.originals);
const keys = [...storage.originals.keys()];
// One service without signatures and with the explorer, and one that enforces signatures.
const plain = await useStack({ EXPLORER: 'on' }, storage.root);
const signed = await useStack(site.settings, storage.root);
// In addition to the originals of random requests: those of the examples.
await plain.put('emojis/1', readSample('emojis/1'));
await plain.put('attachments/2/0/nothing.txt', Buffer.alloc(0));
await plain.put('attachments/2/1/a', readSample('emojis/1'));
await plain.put('attachments/2/1/a?width=20', readSample('emojis/2'));
await plain.put('attachments/2/1/things.json', readSample('attachments/1/19/things.json'));
const name = 'attachments/2/1/what? a=b+c;d:e@f,g\'"<>|^`{}[]~!$*() 🎉 #1 %20.png';
await plain.put(name, readSample('emojis/1'));

/** Headers of a connection, of a point in time, or of nginx itself. */
const OF_THE_HOP: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'transfer-encoding', 'date', 'server'],
  ...['cache-status', 'server-timing', 'x-request-id'],
]);

/** Errors that nginx returns without Darkroom. */
const REFUSALS: Readonly<Record<string, number>> = { INVALID_FORM_BODY: 400, NOT_FOUND: 404 };

type Headers = Record<string, string>;
const get = (target: string, headers: Headers = {}, method = 'GET') => ({
  method,
  target,
  headers,
});
type Request = ReturnType<typeof get>;

const words = (text: string): string[] => text.trim().split(/\s+/);
const gets = (text: string): Request[] => words(text).map((target) => get(target));

const OWN_TAG = '<own tag>';
const tags = fc.constantFrom(OWN_TAG, `W/${OWN_TAG}`, '"other"', `"other", W/${OWN_TAG}`, '*');
const dates = fc
  .constantFrom(-86_400, 0, 86_400)
  .map((off) => new Date(CHANGED_AT.getTime() + off * 1000).toUTCString());
const ranges = fc.constantFrom(
  ...['0-0', '5-9', '-7', '-0', '10-', '0-99999999', '99999999-', '0-1,4-5'].map(
    (range) => `bytes=${range}`,
  ),
  'items=0-1',
);
const headers = weighted<Headers>(
  [3, fc.constant({})],
  [2, ranges.map((range) => ({ Range: range }))],
  [1, tags.map((tag) => ({ 'If-None-Match': tag }))],
  [1, dates.map((date) => ({ 'If-Modified-Since': date }))],
  [1, fc.record({ Range: ranges, 'If-Range': fc.oneof(tags, dates) })],
  [
    1,
    fc.constantFrom(
      { 'Accept-Encoding': 'gzip' },
      { 'Cache-Control': 'no-cache', Pragma: 'no-cache' },
      { Authorization: 'Bearer x', Cookie: 'a=b', Accept: 'image/avif', 'User-Agent': 'x' },
    ),
  ],
);
const methods = weighted(
  [9, fc.constantFrom('GET', 'HEAD')],
  [1, fc.constantFrom('OPTIONS', 'POST', 'DELETE')],
);
const requestsFor = (target: fc.Arbitrary<string>): fc.Arbitrary<Request> =>
  fc
    .record({ method: methods, target, headers })
    .filter((request) => /^\/[!-~]*$/.test(request.target))
    // For a HEAD, nginx reports the range, Darkroom the complete file; both are permitted (RFC 9110 §14.2).
    .filter((request) => request.method !== 'HEAD' || !('Range' in request.headers));

/** Different spellings of queries, which must not share a cache entry. */
const names = ['size', 'width', 'height', 'format', 'quality', 'animated', 'v', 'SIZE', 's%69ze'];
const odd = ['%71uality', 'size%20', '+size', '%', '%zz', '', 'wi%64th'];
const values = ['64', '80', '', '+', '%36%34', 'webp', 'low', 'lossless', 'true', 'false', '0'];
const pairs = fc
  .tuple(fc.constantFrom(...names, ...names, ...odd), fc.constantFrom(undefined, ...values))
  .map(([name, value]) => (value === undefined ? name : `${name}=${value}`));
const queries = fc
  .tuple(fc.constantFrom('/emojis/1.webp', '/attachments/2/1/a'), fc.array(pairs, { maxLength: 4 }))
  .map(([path, parts]) => `${path}?${parts.join('&')}`);

const encoded = `/${name.split('/').map(encodeURIComponent).join('/')}`;

/** Requests that are easily confused: similar queries and paths, and ranges of small, empty or missing files. */
const plainExamples: readonly Request[] = [
  ...words(`
    size=64 SIZE=64&size=128 size=128 s%69ze=64 size=%36%34 size=64&s%69ze=80 size size= size=64=
    size=64;size=80 ?size=64 size=+64 size=%2064 animated=true&animated=true animated=true
    animated=TRUE animated Animated=1 size=64&v=1&size=64 v=1&v=2&size=64 %73ize size&size
    size=64&size`).map((query) => get(`/emojis/1.webp?${query}`)),
  ...gets(`
    /emojis//1.webp /emojis/1/../1.webp /emojis/./1.webp /emojis%2F1.webp /emojis/1.webp/
    /emojis/1%2Ewebp /avatars/0.png /avatars/%30.png?size=1 /avatars/6.png /%2e /attachments/2/1/..
    /attachments/2/1/%2e%2E /attachments/2/1/. /attachments/2/1/a%2Fb /attachments/2/1/a%2fa/../a
    /attachments/2/1/a?width= /attachments/2/1/%5C /attachments/2/1/%0A /attachments/2/1/%FF
    /attachments/2/1/%252e%252e /.problem /.unsatisfiable /.external /.external-part /.external/x
    /attachments/2/1/a?width=20 /attachments/2/1/a%3Fwidth=20 ${encoded} ${encoded}?width=20
    /%61ttachments/2/1/a?width=64&size=1 /attachments/2/1/a?quality=lossless&animated=true
    /attachments/2/1/a?quality=best /favicon.ico /attachments /v1/relay /external /nothing
    /explorers /Explorer/ // /nothing/explorer/ /avatars/unknown/ab12.webp`),
  ...words('/attachments/2/1/a /attachments/2/1/a?width=20 /emojis/1.webp /avatars/4.png').flatMap(
    (target) =>
      words('5-9 -7 9- 99999999- -0 0-1,4-5').flatMap((range) =>
        [{}, { 'If-Range': OWN_TAG }, { 'If-Range': `W/${OWN_TAG}` }].map((condition) =>
          get(target, { Range: `bytes=${range}`, ...condition }),
        ),
      ),
  ),
  ...[{ Range: 'bytes=0-9' }, { Range: 'bytes=-9' }, {}].map((each) =>
    get('/attachments/2/0/nothing.txt', each),
  ),
  get('/attachments/2/0/nothing.txt', {}, 'HEAD'),
  // Debian's nginx.conf has `gzip on`, which must not reach media.
  get('/attachments/2/1/things.json', { 'Accept-Encoding': 'gzip' }),
];

const externalOf = (target: string): string => `/external/${sign(target, 'base64url')}/${target}`;
const ofUrl = (url: string): string => externalOf(`v2/${Buffer.from(url).toString('base64url')}`);
const photo = `${ofUrl(`${site.origin}/photo.png`)}?width=40`;
const long = `${site.origin}/photo.png?`.padEnd(8_192, 'w');

/** Paths that nginx might resolve, decode or truncate, each signed unchanged; and URLs that must not be confused. */
const signedExamples: readonly Request[] = [
  ...words(`
    https/a.example//x//y/ https/a.example/../x/./y/.. https/a.example/%2e%2e/%2F/%2f/%41%7E
    https/a.example/%3Fx/%23/%25/%252e https/a.example/:@!$&'()*+,;=|^~ v2/!
    %3Fa%3Db%26c%253D/https/a.example/x+y ../../avatars/1/ab12.webp
    https/a.example/../../../../avatars/1/ab12.webp https/a.example/../../../explorer/`).flatMap(
    (target) => ['', '?width=32'].map((query) => get(externalOf(target) + query)),
  ),
  ...['?width=24&width=24', '?w%69dth=24&width=x', '?width='].map((query) =>
    get(photo.replace(/\?.*/, query)),
  ),
  ...gets(`${photo} ${photo.replace('/external/', '/%65xternal/')} /avatars/..${photo}`),
  ...[long, `${long}x`].map((url) => get(`${ofUrl(url)}?width=16`)),
  // nginx must revalidate what it does not cache.
  ...[{ 'If-Match': '"other"' }, { 'If-Match': OWN_TAG }].map((condition) =>
    get(photo.replace(/\?.*/, ''), { Range: 'bytes=0-9', ...condition }),
  ),
];

// A replacement of the platform's media service (contract §14).
const OWN = 'https://cdn.example/media';
const lane = 'attachments/1/1/country-lane.jpg';
const platform = await useSiteStack({ COMPATIBILITY: 'fluxer', PUBLIC_URLS: OWN });
platform.site.serveRanges('/cat.png', samples.png);
platform.site.serveRanges('/dog.gif', samples.animatedGif);
await platform.put('themes/midnight.css', Buffer.from('body { color: teal }'));
await platform.put('entrance-sounds/1/ab12.mp3', readSample('attachments/1/17/jingle.mp3'));
await platform.put('branding/acme/ab12', readSample('icons/1/ab12'));
await platform.put('attachments/a/b/c/photo.jpg', readSample(lane));

const platformPaths = [
  ...words(`
    /avatars/2/cd34.webp /avatars/2/a_cd34.PNG /icons/2/cd34.avif /emojis/11.gif /stickers/1.json
    /banners/2/cd34.jpg /branding/acme/ab12.webp /avatars/3.png /${lane}
    /attachments/a%2Fb/c/photo.jpg /attachments/a/b/c/photo.jpg /avatars/9.PNG
    /attachments/1/14/romeo.txt /attachments/a//b /attachments/none /themes/midnight.css
    /entrance-sounds/1/ab12.mp3 /guilds/1/users/2/avatars/a_cd34.webp /emojis/none.png`),
  ...['/cat.png', '/dog.gif'].map((path) => platform.externalPath(path)),
  ...words(`/avatars/2/cd34.webp /${lane} /emojis/11.gif /${lane}?width=30 /themes/no`).map(
    (path) => signedPathOf(OWN + path),
  ),
];
// The last ones have unknown or differently spelled names.
const platformPairs = words(`
  size=1 size=129 size=640 size=x size= width=20 width=40 width=5000 width=16385 width=x height=20
  height=9000 format=webp format=PNG format=gif format=auto fmt=webp fmt=PNG fmt=gif fmt=auto
  quality=low quality=lossless quality=auto animated=true animated=1 animated=false animated=TRUE
  download=true download=1 download=false Size=640 v=1 f%6Dt=gif downl0ad=true`);
const platformRequests = fc
  .tuple(
    fc.constantFrom(...platformPaths),
    fc.array(fc.constantFrom(...platformPairs), { maxLength: 4 }),
    fc.constantFrom({}, {}, {}, { Range: 'bytes=3-9' }, { Range: 'bytes=-7' }),
  )
  .map(([path, query, each]) =>
    get(query.length === 0 ? path : `${path}?${query.join('&')}`, each),
  );
/** Requests that must not share a cache entry. */
const platformExamples = [
  ...gets(`
    /avatars/2/cd34.png?fmt=gif /avatars/2/cd34.png?format=webp /avatars/2/cd34.png?fmt=webp
    /avatars/2/cd34.png?download=true /avatars/2/cd34.png?size=300 /avatars/2/cd34.png?
    /${lane}?fmt=gif&width=9 /${lane}?width=9 /${lane}?download=1
    /${lane}?format=gif&width=9&download=1 /${lane}?`),
  get(platform.externalPath('/cat.png', 'size=x&size=1'), { Range: 'bytes=3-9' }),
  get(platform.externalPath('/dog.gif', 'size=x&size=1'), { Range: 'bytes=-7' }),
];

/** Returns everything that must be equal: status, body, and all header lines. */
function comparableOf({ status, headers }: ClientResponse, direct: ClientResponse): object {
  const { 'content-range': range = [], 'cache-control': lifetime = [] } = headers;
  // If nginx itself rejects a range, it sends the headers of the complete file, with the stricter lifetime.
  if (status === 416) return { range, isKept: !lifetime.join().endsWith('no-store') };
  const comparable = Object.entries(headers).filter(
    ([name]) =>
      !OF_THE_HOP.has(name) &&
      // A part of a slice has no Accept-Ranges; for complete files, nginx adds it.
      !(name === 'accept-ranges' && (status === 206 || direct.header(name) === 'none')) &&
      // A 304 may have more headers of the cached response.
      !(status === 304 && direct.headers[name] === undefined),
  );
  // A lifetime that ends with a signature, or that another site declares, changes every second.
  const ages = /max-age=(?:3\d{3}|8\d{4}|60\d{4})$/;
  const ageless = lifetime.map((line) => line.replace(ages, 'max-age=…'));
  return { ...Object.fromEntries(comparable), 'cache-control': ageless };
}

test.each([
  [
    'without signatures',
    plain,
    requestsFor(fc.oneof(targets(keys), queries)),
    plainExamples,
    [200, 204, 206, 304, 400, 404, 405, 415, 416],
  ],
  [
    'with signed attachments and external media',
    signed,
    requestsFor(
      fc.oneof(
        signedAttachments(keys.filter((key) => key.startsWith('attachments/'))),
        externalPaths(site.origin, [...site.originals.keys()]),
      ),
    ),
    signedExamples,
    [200, 204, 206, 304, 400, 401, 404, 405, 415, 416, 502],
  ],
  ["in the platform's place", platform, platformRequests, platformExamples, [200, 206, 400, 404]],
] as const)(
  'responses through nginx equal those of Darkroom, except for three headers, %s',
  async (_, stack, requests, examples, expected) => {
    const statuses = new Set<number>();
    let hits = 0;
    await fc.assert(
      fc.asyncProperty(requests, async ({ method, target, headers }) => {
        // Until Darkroom has decoded an unsupported file, it may return 304 for a condition.
        const etag = (await stack.requestDirectly(target)).header('etag') || '"none"';
        const sent: Headers = {};
        for (const [key, value] of Object.entries(headers))
          sent[key] = value.replace(OWN_TAG, etag);
        const direct = await stack.requestDirectly(target, { method, headers: sent });
        statuses.add(direct.status);
        for (const round of ['cold', 'warm']) {
          const forwarded = stack.relay.requests.length;
          const proxied = await stack.request(target, { method, headers: sent });
          hits += Number(proxied.nginx === 'hit');
          const what = `${round} ${method} ${target}`;
          const isOwn =
            proxied.header('cache-status') === '' && forwarded === stack.relay.requests.length;
          if (isOwn && proxied.status !== 416) {
            // Invalid escapes, and paths out of the root.
            const text = method === 'HEAD' ? '{}' : proxied.body.toString();
            const { code } = JSON.parse(text);
            if (method !== 'HEAD') expect(REFUSALS[code], what).toBe(proxied.status);
            expect(direct.status, what).toBeGreaterThanOrEqual(400);
            continue;
          }
          expect(proxied.status, what).toBe(direct.status);
          expect(proxied.body.equals(direct.body), what).toBe(true);
          expect(comparableOf(proxied, direct), what).toEqual(comparableOf(direct, direct));
          const id = proxied.headers['x-request-id'];
          expect(id, what).toEqual([expect.stringMatching(/^[\da-f]{32}$/)]);
        }
      }),
      {
        numRuns: atScale(500, 3_000),
        examples: examples.map((example) => [example]),
        endOnFailure: true,
      },
    );
    expect(hits).toBeGreaterThan(100);
    for (const status of expected) expect(statuses).toContain(status);
  },
  300_000,
);

test('nginx does not serve the explorer for any spelling of its path', async () => {
  expect((await plain.requestDirectly('/explorer/originals.json')).status).toBe(200);
  const nowhere = await plain.requestDirectly('/nothing/here');
  for (const target of words(`
    / /?a=b /explorer /explorer/ /explorer/explorer.js /explorer/originals.json
    /%65xplorer/originals.json /explorer%2Foriginals.json /a/../explorer/originals.json /.`)) {
    for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS']) {
      const { status, body, header } = await plain.request(target, { method });
      expect([status, header('content-type')], target).toEqual([
        404,
        nowhere.header('content-type'),
      ]);
      expect(body).toEqual(method === 'HEAD' ? Buffer.alloc(0) : nowhere.body);
    }
  }
  expect(plain.relay.requests).toHaveLength(0);
});

test('in compatibility mode, nginx keys requests by the parameters that Darkroom reads, and slices originals', async () => {
  for (const [first, second] of [
    ['/icons/1/ab12.webp?size=64', '/icons/1/ab12.webp?v=1&size=64&utm=2'],
    [`/${lane}?width=64`, `/${lane}?size=128&width=64`],
    ['/avatars/4.png', '/avatars/4.png?fmt=gif&fmt=png&size=1'],
  ] as const) {
    await platform.request(first);
    expect(await platform.request(second), second).toMatchObject({ status: 200, nginx: 'hit' });
  }
  const target = '/attachments/3/1/film.bin';
  await platform.put(target, Buffer.alloc(3 * 1024 * 1024, 'slices'));
  const headers = { Range: 'bytes=5-9' };
  expect((await platform.request(`${target}?download=true`, { headers })).status).toBe(206);
  expect(platform.relay.requests.at(-1)?.headers.range).toBe('bytes=0-1048575');
});
