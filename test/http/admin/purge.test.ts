import { beforeEach, describe, expect, it } from 'vitest';
import { defer } from '../../support/deferred.ts';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import {
  METRICS_TOKEN,
  metricsSettings,
  withToken,
} from '../../support/telemetry/prometheus-text.ts';
import { samples, type TestApp, useTestApp } from '../../support/test-app.ts';

const token = METRICS_TOKEN;
const small = '/icons/1/ab.webp?size=16';
const large = '/icons/1/ab.png?size=64';
const other = '/icons/12/ab.webp?size=16';

let app: TestApp;
let store: MemoryResultStore;

beforeEach(async () => {
  store = new MemoryResultStore();
  app = await useTestApp({ settings: metricsSettings, resultStore: store });
  for (const id of [1, 12]) app.originals.put(`icons/${id}/ab`, samples.jpeg);
});

async function get(url: string) {
  const { statusCode, headers } = await app.get(url);
  return { status: statusCode, cacheStatus: headers['cache-status'] };
}

function order(payload: object | string, authorization: string | undefined = `Bearer ${token}`) {
  return app.askAdmin('/purge', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(authorization && { authorization }) },
    payload: typeof payload === 'string' ? payload : JSON.stringify(payload),
  });
}

/** Has renderings made, and waits until they are stored. */
async function fill(...urls: string[]): Promise<void> {
  for (const url of urls) expect((await get(url)).status).toBe(200);
  await expect.poll(() => store.paths.length).toBe(urls.length);
}

describe('a purge', () => {
  // Which renderings go by a path, a key or a prefix, and which stay: the walks of test/cache. Here is how they are named.
  it.each([
    [{ paths: ['/icons/1/a_ab.webp?v=2&quality=high&size=16'] }, 1],
    [{ assets: ['icons/1/a_ab'] }, 2],
    [{ prefix: 'icons/1/a_ab/' }, 2],
    [{ prefix: 'icons/1/' }, 2],
    [{ prefix: 'icons/' }, 3],
  ])('by %j removes as many renderings as that means', async (payload, count) => {
    await fill(small, large, other);
    expect((await order(payload)).json()).toEqual({ removed: { memory: count, store: count } });
  });

  it.each([
    [
      'fails',
      new Error('the disk is gone'),
      502,
      'STORE_ERROR',
      'The store has failed. The memory is purged; purge again once the store works.',
    ],
    [
      'does not respond',
      Object.assign(new Error('the disk hangs'), { name: 'TimeoutError' }),
      504,
      'STORE_TIMEOUT',
      'The store has not responded in time. The memory is purged; purge again later.',
    ],
  ])('of a store that %s has purged the memory', async (_, failure, status, code, message) => {
    await fill(small);
    store.failure = failure;
    const response = await order({ assets: ['icons/1/ab'] });
    expect([response.statusCode, response.json()]).toEqual([status, { code, message }]);
    expect(app.log.errors).toMatchObject([
      { asked: { assets: ['icons/1/ab'] }, client: '127.0.0.1' },
    ]);
    app.originals.delete('icons/1/ab');
    expect((await get(small)).status).toBe(404);
  });
});

describe('the log of purges', () => {
  const client = '127.0.0.1';

  it.each([
    [{ prefix: 'icons/1/' }, { prefix: 'icons/1/' }],
    [{ assets: ['icons/1/a_ab', 'icons/1/cd'] }, { assets: ['icons/1/a_ab', 'icons/1/cd'] }],
    [{ paths: [small] }, { paths: [small] }],
    [
      { assets: Array.from({ length: 1_000 }, (_, id) => `emojis/${id}`) },
      { assets: Array.from({ length: 10 }, (_, id) => `emojis/${id}`), more: 990 },
    ],
    [
      { paths: [`${small}&v=${'x'.repeat(1_000)}`] },
      { paths: [`${`${small}&v=${'x'.repeat(1_000)}`.slice(0, 200)}…`] },
    ],
  ])('has what was asked, in the words of the API, and by whom: %#', async (payload, asked) => {
    const response = await order(payload);
    const { removed } = response.json();
    const details = { asked, client, removed };
    expect(app.log.entries).toEqual([{ level: 'info', message: 'purged', details }]);
  });
});

describe('purges that wait for others', () => {
  it('get a time to try again where there are too many', async () => {
    const removing = defer<number>();
    store.remove = () => removing.promise;
    const underWay = Array.from({ length: 66 }, () => order({ prefix: 'icons/1/' }));
    await new Promise((resolve) => setTimeout(resolve, 100));
    const refused = await order({ prefix: 'icons/1/' });
    expect([refused.statusCode, refused.json()]).toEqual([
      503,
      { code: 'OVERLOADED', message: 'The service is at its capacity; try again later.' },
    ]);
    expect(refused.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    removing.resolve(0);
    const responses = await Promise.all(underWay);
    expect(new Set(responses.map(({ statusCode }) => statusCode))).toEqual(new Set([200]));
  });
});

describe('the admin listener', () => {
  it('takes orders with the token, as a bearer, and no others', async () => {
    await fill(small);
    for (const authorization of [
      ...['', 'Bearer another-token-of-them', `Bearer ${token.slice(0, -1)}`, `Bearer ${token}x`],
      ...[`Basic ${token}`, token, `Bearer ${token} x`, 'Bearer '],
    ]) {
      const response = await order({ prefix: 'icons/' }, authorization);
      expect(response.statusCode, authorization).toBe(401);
      expect(response.headers['www-authenticate']).toBe('Bearer');
      const message = 'A valid token is needed.';
      expect(response.json()).toEqual({ code: 'UNAUTHORIZED', message });
    }
    expect(store.paths.length).toBe(1);
    for (const scheme of ['Bearer ', 'bearer ', 'BEARER  ']) {
      expect((await order({ prefix: 'icons/' }, scheme + token)).statusCode).toBe(200);
    }
  });

  it.each([
    ['without a token', {}, 401, 'UNAUTHORIZED'],
    ['with the token', withToken, 404, 'NOT_FOUND'],
  ])('takes no other path for one that is open: %s', async (_, headers, status, code) => {
    const urls = ['/%zz', '/nothing', small, '/healthz%3Fx', '/healthz/', '/healthz/../x'];
    // Without a CDN there are no purges to ask for, and no blocks without a list.
    for (const url of [...urls, '/purges', '/purges/x', '/blocks']) {
      const response = await app.askAdmin(url, { headers });
      expect(response.statusCode).toBe(status);
      expect(response.json()).toEqual({ code, message: expect.any(String) });
      expect(response.headers['cache-control']).toBe('no-store');
    }
  });
});
