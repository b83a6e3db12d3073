import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import { defer } from '../../support/deferred.ts';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import {
  metricsSettings,
  METRICS_TOKEN as token,
  withToken,
} from '../../support/telemetry/prometheus-text.ts';
import { type TestApp, useTestApp } from '../../support/test-app.ts';

const small = '/icons/1/ab.webp?size=16';

let app: TestApp;
let store: MemoryResultStore;

beforeEach(async () => {
  store = new MemoryResultStore();
  app = await useTestApp({ settings: metricsSettings, resultStore: store });
});

const sendPurge = (payload: object, authorization = `Bearer ${token}`) =>
  app.requestAdmin('/purge', { method: 'POST', headers: { authorization }, payload });

// test/cache tests which renderings a path, key or prefix selects, and that memory is purged at once.
test.each([
  ['fails', new Error('the disk is gone'), 502, 'STORE_ERROR'],
  ['hangs', new DOMException('the disk hangs', 'TimeoutError'), 504, 'STORE_TIMEOUT'],
])('reports and logs a purge whose store %s', async (_, failure, status, code) => {
  store.failure = failure;
  const payload = { assets: ['icons/1/ab'] };
  const response = await sendPurge(payload);
  expect([response.statusCode, response.json().code]).toEqual([status, code]);
  expect(app.log.errors).toMatchObject([{ asked: payload, client: '127.0.0.1' }]);
});

test.each([
  [{ prefix: 'icons/1/' }, { prefix: 'icons/1/' }],
  [{ assets: ['icons/1/a_ab', 'icons/1/cd'] }, { assets: ['icons/1/a_ab', 'icons/1/cd'] }],
  [
    { assets: Array.from({ length: 1_000 }, (_, id) => `emojis/${id}`) },
    { assets: Array.from({ length: 10 }, (_, id) => `emojis/${id}`), more: 990 },
  ],
  [
    { paths: [`${small}&v=${'x'.repeat(1_000)}`] },
    { paths: [`${`${small}&v=${'x'.repeat(1_000)}`.slice(0, 200)}…`] },
  ],
])('logs the purge as received, with the client: %#', async (payload, logged) => {
  const response = await sendPurge(payload);
  const { removed } = response.json();
  const details = { asked: logged, client: '127.0.0.1', removed };
  expect(app.log.entries).toEqual([{ level: 'info', message: 'purged', details }]);
});

test('returns Retry-After if too many purges wait', async () => {
  const removing = defer<number>();
  store.remove = () => removing.promise;
  const pending = Array.from({ length: 66 }, () => sendPurge({ prefix: 'icons/1/' }));
  await sleep(100);
  const refused = await sendPurge({ prefix: 'icons/1/' });
  expect([refused.statusCode, refused.json().code]).toEqual([503, 'OVERLOADED']);
  expect(refused.headers['retry-after']).toMatch(/^[1-9]\d*$/);
  removing.resolve(0);
  const responses = await Promise.all(pending);
  expect(new Set(responses.map(({ statusCode }) => statusCode))).toEqual(new Set([200]));
});

describe('the admin listener', () => {
  test('accepts only requests with the bearer token', async () => {
    for (const authorization of [
      ...['', 'Bearer another-token-of-them', `Bearer ${token.slice(0, -1)}`, `Bearer ${token}x`],
      ...[`Basic ${token}`, token, `Bearer ${token} x`, 'Bearer '],
    ]) {
      const response = await sendPurge({ prefix: 'icons/' }, authorization);
      expect(response.statusCode, authorization).toBe(401);
      expect(response.headers['www-authenticate']).toBe('Bearer');
      const message = 'A valid token is required.';
      expect(response.json()).toEqual({ code: 'UNAUTHORIZED', message });
    }
    expect(app.log.entries).toEqual([]);
    for (const scheme of ['Bearer ', 'bearer ', 'BEARER  ']) {
      expect((await sendPurge({ prefix: 'icons/' }, scheme + token)).statusCode).toBe(200);
    }
  });

  test.each([
    ['without a token', {}, 401, 'UNAUTHORIZED'],
    ['with the token', withToken, 404, 'NOT_FOUND'],
  ])('protects every path except public ones: %s', async (_, headers, status, code) => {
    const urls = ['/%zz', '/nothing', small, '/healthz%3Fx', '/healthz/', '/healthz/../x'];
    // Without a CDN there are no purges, and without a list no blocks.
    for (const url of [...urls, '/purges', '/purges/x', '/blocks']) {
      const response = await app.requestAdmin(url, { headers });
      expect(response.statusCode).toBe(status);
      expect(response.json()).toEqual({ code, message: expect.any(String) });
      expect(response.headers['cache-control']).toBe('no-store');
    }
  });

  test.each([
    ['GET', '/blocks', 'Blocking is off: set BLOCKLIST.'],
    ['POST', '/blocks', 'Blocking is off: set BLOCKLIST.'],
    ['DELETE', '/blocks', 'Blocking is off: set BLOCKLIST.'],
    ['GET', '/purges', 'No CDN in front is configured: set EDGE.'],
    ['GET', '/purges/x', 'No CDN in front is configured: set EDGE.'],
  ] as const)(
    'the error for %s %s names the setting that enables it',
    async (method, url, message) => {
      const response = await app.requestAdmin(url, { method, headers: withToken });
      expect([response.statusCode, response.json()]).toEqual([404, { code: 'NOT_FOUND', message }]);
    },
  );
});
