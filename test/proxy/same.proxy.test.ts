import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import type { ClientResponse } from '../support/http/http-client.ts';
import '../support/property-seed.ts';
import { readSample } from '../support/test-app.ts';
import { atScale } from '../support/test-scale.ts';
import { targets } from '../surface/surface-requests.ts';
import { CHANGED_AT, createSurfaceStorage } from '../surface/surface-storage.ts';
import { useStack } from './stack.ts';

const storage = await createSurfaceStorage();
afterAll(storage.remove);
// Besides what is drawn there: what the examples ask for.
const stack = await useStack({ EXPLORER: 'on' }, storage.root);
await stack.put('emojis/1', readSample('emojis/1'));
await stack.put('attachments/2/0/nothing.txt', Buffer.alloc(0));
await stack.put('attachments/2/1/a', readSample('emojis/1'));
await stack.put('attachments/2/1/a?width=20', readSample('emojis/2'));
await stack.put('attachments/2/1/things.json', readSample('attachments/1/19/things.json'));
const name = 'attachments/2/1/what? a=b+c;d:e@f,g\'"<>|^`{}[]~!$*() 🎉 #1 %20.png';
await stack.put(name, readSample('emojis/1'));

/** Of one connection, of one moment, or of nginx itself. */
const OF_THE_HOP: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'transfer-encoding', 'date', 'server'],
  ...['cache-status', 'server-timing', 'x-request-id'],
]);

/** What only nginx's own caches see: they refuse it before it comes to Darkroom, or the explorer, which is not shown. */
const REFUSALS: Readonly<Record<string, number>> = { INVALID_FORM_BODY: 400, NOT_FOUND: 404 };

interface Request {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
}

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
const headers = fc.oneof(
  { arbitrary: fc.constant({}), weight: 3 },
  { arbitrary: ranges.map((range) => ({ Range: range })), weight: 2 },
  tags.map((tag) => ({ 'If-None-Match': tag })),
  dates.map((date) => ({ 'If-Modified-Since': date })),
  fc.tuple(ranges, fc.oneof(tags, dates)).map(([range, condition]) => ({
    Range: range,
    'If-Range': condition,
  })),
  fc.constantFrom<Record<string, string>>(
    { 'Accept-Encoding': 'gzip' },
    { 'Cache-Control': 'no-cache', Pragma: 'no-cache' },
    { Authorization: 'Bearer x', Cookie: 'a=b', Accept: 'image/avif', 'User-Agent': 'x' },
  ),
);
const methods = fc.oneof(
  { arbitrary: fc.constantFrom('GET', 'HEAD'), weight: 9 },
  fc.constantFrom('OPTIONS', 'POST', 'DELETE'),
);

/** Queries of every spelling, of which none may be taken for another. */
const names = ['size', 'width', 'height', 'format', 'quality', 'animated', 'v', 'SIZE', 's%69ze'];
const odd = ['%71uality', 'size%20', '+size', '%', '%zz', '', 'wi%64th'];
const values = ['64', '80', '', '+', '%36%34', 'webp', 'low', 'lossless', 'true', 'false', '0'];
const pairs = fc
  .tuple(fc.constantFrom(...names, ...names, ...odd), fc.constantFrom(undefined, ...values))
  .map(([name, value]) => (value === undefined ? name : `${name}=${value}`));
const queries = fc
  .tuple(fc.constantFrom('/emojis/1.webp', '/attachments/2/1/a'), fc.array(pairs, { maxLength: 4 }))
  .map(([path, parts]) => `${path}?${parts.join('&')}`);
const isWritable = (target: string): boolean => /^\/[!-~]*$/.test(target);
const requests: fc.Arbitrary<Request> = fc
  .record({
    method: methods,
    target: fc.oneof(targets([...storage.originals.keys()]).filter(isWritable), queries),
    headers,
  })
  // Of a HEAD, nginx tells the range, where Darkroom tells the whole; either may be (RFC 9110 §14.2).
  .filter(({ method, headers }) => method !== 'HEAD' || !('Range' in headers));

const get = (target: string, headers = {}, method = 'GET'): Request => ({
  method,
  target,
  headers,
});
const icon = '/emojis/1.webp';
const encoded = `/${name.split('/').map(encodeURIComponent).join('/')}`;

/** What was once told wrong, or could be: paths and queries that are alike, ranges of what is small, empty or no file. */
const examples: readonly Request[] = [
  ...[
    '?size=64',
    '?SIZE=64&size=128',
    '?size=128',
    '?s%69ze=64',
    '?size=%36%34',
    '?size=64&s%69ze=80',
  ],
  ...['?size', '?size=', '?size=64=', '?size=64;size=80', '??size=64', '?size=+64', '?size=%2064'],
  ...[
    '?animated=true&animated=true',
    '?animated=true',
    '?animated=TRUE',
    '?animated',
    '?Animated=1',
  ],
  ...['?size=64&v=1&size=64', '?v=1&v=2&size=64', '?%73ize', '?size&size', '?size=64&size'],
].map((query) => get(icon + query));
const paths = [
  ...['/emojis//1.webp', '/emojis/1/../1.webp', '/emojis/./1.webp', '/emojis%2F1.webp', `${icon}/`],
  ...['/emojis/1%2Ewebp', '/avatars/0.png', '/avatars/%30.png?size=1', '/avatars/6.png', '/%2e'],
  ...[
    '/attachments/2/1/..',
    '/attachments/2/1/%2e%2E',
    '/attachments/2/1/.',
    '/attachments/2/1/a%2Fb',
  ],
  ...['/attachments/2/1/a%2fa/../a', '/attachments/2/1/a?width=', '/attachments/2/1/%5C'],
  ...['/attachments/2/1/%0A', '/attachments/2/1/%FF', '/attachments/2/1/%252e%252e', '/.problem'],
  ...[
    '/attachments/2/1/a?width=20',
    '/attachments/2/1/a%3Fwidth=20',
    encoded,
    `${encoded}?width=20`,
  ],
  ...['/%61ttachments/2/1/a?width=64&size=1', '/attachments/2/1/a?quality=lossless&animated=true'],
  ...[
    '/attachments/2/1/a?quality=best',
    '/favicon.ico',
    '/.unsatisfiable',
    ...['/.external', '/attachments', '/v1/relay', '/external'],
    '/nothing',
  ],
  ...['/explorers', '/Explorer/', '//', '/nothing/explorer/', '/avatars/nobody/ab12.webp'],
].map((target) => get(target));
const parts = [
  ...['/attachments/2/1/a', '/attachments/2/1/a?width=20', icon, '/avatars/4.png'].flatMap(
    (target) =>
      ['bytes=5-9', 'bytes=-7', 'bytes=9-', 'bytes=99999999-', 'bytes=-0', 'bytes=0-1,4-5'].flatMap(
        (range) =>
          ['', OWN_TAG, `W/${OWN_TAG}`].map((tag) =>
            get(target, { Range: range, ...(tag && { 'If-Range': tag }) }),
          ),
      ),
  ),
  ...['bytes=0-9', 'bytes=-9'].map((range) =>
    get('/attachments/2/0/nothing.txt', { Range: range }),
  ),
  ...['GET', 'HEAD'].map((method) => get('/attachments/2/0/nothing.txt', {}, method)),
  // Debian's nginx.conf has `gzip on`, which must not reach media.
  get('/attachments/2/1/things.json', { 'Accept-Encoding': 'gzip' }),
];

/** What of a response must be the same: its headers, each in as many lines as it came. */
function lastingOf({ status, headers }: ClientResponse, direct: ClientResponse): object {
  const { 'content-range': range = [], 'cache-control': lifetime = [] } = headers;
  // nginx, which finds out by itself that a range lies outside, has the headers of the whole; but of two lifetimes the
  // stricter one holds.
  if (status === 416) return { range, isKept: !lifetime.join().endsWith('no-store') };
  const lasting = Object.entries(headers).filter(
    ([name]) =>
      !OF_THE_HOP.has(name) &&
      // Of a part of a slice, nothing says that there are parts; a 304 may have more of what is kept.
      !(status === 206 && name === 'accept-ranges') &&
      !(status === 304 && direct.headers[name] === undefined),
  );
  return Object.fromEntries(lasting);
}

test('all that is asked through nginx is told as Darkroom tells it, but for three headers', async () => {
  const statuses = new Set<number>();
  let hits = 0;
  await fc.assert(
    fc.asyncProperty(requests, async ({ method, target, headers }) => {
      const { header } = await stack.askDirectly(target);
      const sent = Object.fromEntries(
        Object.entries(headers).map(([key, value]) => [
          key,
          value.replace(OWN_TAG, header('etag') || '"none"'),
        ]),
      );
      const direct = await stack.askDirectly(target, { method, headers: sent });
      statuses.add(direct.status);
      for (const round of ['cold', 'warm']) {
        const forwarded = stack.relay.requests.length;
        const proxied = await stack.ask(target, { method, headers: sent });
        hits += Number(proxied.nginx === 'hit');
        const isOwn =
          proxied.header('cache-status') === '' && forwarded === stack.relay.requests.length;
        if (isOwn && proxied.status !== 416) {
          // Escapes that are none, and ways out of the root.
          const { code } =
            method === 'HEAD' ? { code: undefined } : JSON.parse(proxied.body.toString());
          expect(code && REFUSALS[code], target).toBe(
            method === 'HEAD' ? undefined : proxied.status,
          );
          expect(direct.status, target).toBeGreaterThanOrEqual(400);
          continue;
        }
        expect(proxied.status, `${round} ${method} ${target}`).toBe(direct.status);
        expect(proxied.body.equals(direct.body), `${round} ${method} ${target}`).toBe(true);
        expect(lastingOf(proxied, direct), `${round} ${method} ${target}`).toEqual(
          lastingOf(direct, direct),
        );
        expect(proxied.headers['x-request-id'], target).toEqual([
          expect.stringMatching(/^[\da-f]{32}$/),
        ]);
      }
    }),
    {
      numRuns: atScale(500, 3_000),
      examples: [...examples, ...paths, ...parts].map((example) => [example]),
      endOnFailure: true,
    },
  );
  expect(hits).toBeGreaterThan(100);
  for (const status of [200, 204, 206, 304, 400, 404, 405, 415, 416]) {
    expect(statuses).toContain(status);
  }
}, 300_000);

test.each([
  ...['/', '/?a=b', '/explorer', '/explorer/', '/explorer/explorer.js', '/explorer/originals.json'],
  // What nginx decodes and resolves.
  ...[
    '/%65xplorer/originals.json',
    '/explorer%2Foriginals.json',
    '/a/../explorer/originals.json',
    '/.',
  ],
])('the explorer is not shown through nginx: %s', async (target) => {
  expect((await stack.askDirectly('/explorer/originals.json')).status).toBe(200);
  const nowhere = await stack.askDirectly('/nothing/here');
  stack.relay.requests.length = 0;
  for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS']) {
    const { status, body, header } = await stack.ask(target, { method });
    expect([status, header('content-type')]).toEqual([404, nowhere.header('content-type')]);
    expect(body).toEqual(method === 'HEAD' ? Buffer.alloc(0) : nowhere.body);
  }
  expect(stack.relay.requests).toHaveLength(0);
});
