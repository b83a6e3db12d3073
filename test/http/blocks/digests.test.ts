import { hash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import { MemoryResultStore } from '../../support/memory-result-store.ts';
import {
  type ExternalAppOptions,
  signedPathOf,
  useExternalApp,
} from '../../support/sites/external-app.ts';
import {
  metricsSettings,
  scrape,
  sendToAdmin,
  withToken,
} from '../../support/telemetry/prometheus-text.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { samples, type TestApp, useTestApp, withDecoder } from '../../support/test-app.ts';

let settings: Readonly<Record<string, string>>;
beforeEach(async () => {
  const { path } = await useTemporaryDirectory();
  const BLOCKLIST_FILE = join(path, 'blocks.jsonl');
  settings = { ...metricsSettings, BLOCKLIST: 'filesystem', BLOCKLIST_FILE };
});

const block = async (app: Pick<TestApp, 'requestAdmin'>, ...blocked: readonly Uint8Array[]) => {
  const sha256 = blocked.map((bytes) => hash('sha256', bytes));
  expect((await sendToAdmin(app, '/blocks', { sha256 })).statusCode).toBe(200);
};

const memoryBytesOf = async (app: TestApp): Promise<number> =>
  (await scrape(app)).read('darkroom_originals_held_bytes');

/** Bytes of an unknown format, above the size that is read completely in these tests. */
const large = Buffer.alloc(300_000, 'a large file. ');
const largeSettings = { MAX_ORIGINAL_BYTES: '100000' };

test('digests of stored renderings apply after a restart; those of internal requests stay in memory', async () => {
  const token = 't'.repeat(32);
  const { path } = await useTemporaryDirectory();
  const stored = { RESULT_STORE: 'filesystem', RESULT_STORE_DIR: path };
  const internal = { INTERNAL_PORT: '0', INTERNAL_TOKEN: token };
  const app = await useTestApp({ settings: { ...settings, ...stored, ...internal } });
  app.originals.put('attachments/1/2/a.png', samples.png);
  await block(app, samples.webp);
  expect((await app.get('/attachments/1/2/a.png?format=webp&width=8')).statusCode).toBe(200);
  const files = async () =>
    (await readdir(path, { recursive: true })).filter((name) => /-[\da-f]{16}$/.test(name));
  await expect.poll(files).toHaveLength(2); // a rendering and a digest
  const response = await app.internal?.inject({
    method: 'POST',
    url: '/_metadata',
    headers: { authorization: `Bearer ${token}` },
    payload: { type: 'base64', base64: samples.png.toString('base64') },
  });
  expect(response?.statusCode).toBe(200);
  const restarted = await useTestApp({ settings: { ...settings, ...stored } });
  restarted.originals.put('attachments/1/2/a.png', samples.png);
  expect((await restarted.get('/attachments/1/2/a.png?format=webp&width=8')).statusCode).toBe(200);
  expect(restarted.renderer.renders).toBe(0);
  await block(app, samples.png);
  await expect.poll(files).toHaveLength(1); // only the digest
  expect(app.log.count('block in effect, but its originals were not purged everywhere')).toBe(0);
  expect((await app.get('/attachments/1/2/a.png?format=webp&width=8')).statusCode).toBe(451);
});

describe('digests', () => {
  test.each([
    ['a render', '/icons/1/ab12.webp?size=16'],
    ['a passthrough original', '/attachments/1/2/a.png'],
    ['metadata', undefined],
  ])('of %s are known after a restart', async (_, url) => {
    const resultStore = new MemoryResultStore();
    const start = async (): Promise<TestApp> => {
      const app = await useTestApp({ settings, resultStore });
      app.originals.put('icons/1/ab12', samples.png);
      app.originals.put('attachments/1/2/a.png', samples.png);
      return app;
    };
    const first = await start();
    await block(first, samples.text);
    if (url !== undefined) expect((await first.get(url)).statusCode).toBe(200);
    else await first.requestAdmin('/metadata/icons/1/ab12?sha256=true', { headers: withToken });
    const [key = ''] = (url ?? '/icons/1/ab12').slice(1).split(/\.webp/);
    await expect
      .poll(() => resultStore.paths.filter((path) => path.startsWith(key)))
      .not.toEqual([]);
    await first.close();
    const second = await start();
    await block(second, samples.png);
    expect((await second.get(url ?? '/icons/1/ab12.webp')).statusCode).toBe(451);
    // The second process reads only the state of the original.
    expect(second.originals.requestedBytes.get(key)).toBe(1);
  });

  test('of replaced originals do not apply to the new ones', async () => {
    const app = await useTestApp({ settings, resultStore: new MemoryResultStore() });
    app.originals.put('attachments/1/2/a.png', samples.png);
    await block(app, samples.png);
    expect((await app.get('/attachments/1/2/a.png')).statusCode).toBe(451);
    app.originals.put('attachments/1/2/a.png', samples.jpeg);
    app.clock.advance(3_600_000);
    expect((await app.get('/attachments/1/2/a.png')).statusCode).toBe(200);
  });
});

describe('originals that are too large to be read completely', () => {
  test.each([
    ['attachment', '/attachments/1/2/a.bin', large],
    ['poster', '/attachments/1/2/a.mp4?format=webp', Buffer.concat([samples.mp4, large])],
  ])('are sent, and checked after they are hashed: %s', async (_, url, bytes) => {
    const app = await useTestApp({ settings: { ...settings, ...largeSettings, ...withDecoder } });
    const [key = ''] = url.slice(1).split('?');
    app.originals.put(key, bytes);
    await block(app, bytes);
    // The block purges renderings once the digest is known.
    expect(url.includes('?') ? [200, 451] : [200]).toContain((await app.get(url)).statusCode);
    await expect.poll(async () => (await app.get(url)).statusCode).toBe(451);
    expect((await app.get(url, { range: 'bytes=0-3' })).statusCode).toBe(451);
  });

  test.each([{ etag: '"a"' }, {}])(
    'of other sites are checked as well, with %j',
    async (fields) => {
      const app = await useExternalApp({ settings: { ...settings, ...largeSettings } });
      const bytes = Buffer.concat([samples.mp4, large]);
      app.site.serve('/a.mp4', bytes, fields);
      await block(app, bytes);
      expect((await app.request('/a.mp4')).status).toBe(200);
      await expect.poll(async () => (await app.request('/a.mp4')).status).toBe(451);
      const ranged = await app.request('/a.mp4', '', { headers: { range: 'bytes=0-3' } });
      expect(ranged.status).toBe(451);
    },
  );
});

describe('hashing in the background', () => {
  const bytes = Buffer.concat([samples.mp4, large]);
  const slow = Buffer.concat([samples.mp4, Buffer.alloc(300_000, 'slow')]);

  /** Starts an app with originals of these hosts, which send each body once; later bodies never end. */
  const start = async (hosts: readonly string[], options: Partial<ExternalAppOptions> = {}) => {
    const app = await useExternalApp({ settings: { ...settings, ...largeSettings }, ...options });
    app.site.serve('/a.mp4', bytes);
    await block(app, bytes);
    const ended: string[] = [];
    let hanging = 0;
    for (const [index, host] of hosts.entries()) {
      app.resolver.set(host, ['127.0.0.1']);
      let isFirst = true;
      app.site.handlers.set(`/${index}.mp4`, (_request, response) => {
        response.writeHead(200, { 'content-length': slow.length });
        if (isFirst) response.end(slow);
        else {
          hanging += 1;
          response.write(slow.subarray(0, 100_000));
          response.once('close', () => ended.push(host));
        }
        isFirst = false;
      });
      const url = `http://${host}:${app.site.port}/${index}.mp4`;
      expect((await app.requestUrl(url)).status).toBe(200);
    }
    return { ...app, ended, hanging: () => hanging };
  };
  const four = ['one.test', 'two.test', 'three.test', 'four.test'];

  test('of stored originals continues while four sites do not end their bodies', async () => {
    const app = await start(four);
    app.originals.put('attachments/1/2/a.bin', large);
    await block(app, large);
    const request = async () => (await app.get('/attachments/1/2/a.bin')).statusCode;
    expect(await request()).toBe(200);
    await expect.poll(request).toBe(451);
    expect(app.ended).toEqual([]);
  });

  test('of other hosts continues while one host does not end its bodies', async () => {
    const app = await start(new Array(6).fill('one.test'));
    expect((await app.request('/a.mp4')).status).toBe(200);
    await expect.poll(async () => (await app.request('/a.mp4')).status).toBe(451);
    expect(app.hanging()).toBe(1);
    expect(app.ended).toEqual([]);
  });

  test('continues after four hosts exceed the deadline', async () => {
    const app = await start(four, { limits: { bodyTimeoutMs: 50 } });
    expect((await app.request('/a.mp4')).status).toBe(200);
    await expect
      .poll(async () => (await app.request('/a.mp4')).status, { timeout: 9_000 })
      .toBe(451);
    await expect.poll(() => app.ended).toHaveLength(4);
  });

  test('ends when the app closes', async () => {
    const app = await start(four, { limits: { pauseMs: 600_000 } });
    await expect.poll(() => app.hanging()).toBe(4);
    await app.close();
    await expect.poll(() => app.ended).toHaveLength(4);
  });
});

describe('external media', () => {
  const requests = [{}, { method: 'HEAD' }, { headers: { range: 'bytes=0-3' } }] as const;
  const start = async () => {
    const app = await useExternalApp({ settings });
    app.site.serve('/a.png', samples.png, { etag: '"a"' });
    app.site.serve('/b.png', samples.webp, { etag: '"b"' });
    return app;
  };

  test('are checked by their bytes, complete or in ranges, also for HEAD and conditional requests', async () => {
    const app = await start();
    const statusOf = async (path: string, ...rest: [query?: string, options?: object]) =>
      (await app.request(path, ...rest)).status;
    const etag = (await app.request('/a.png')).header('etag');
    await block(app, samples.png);
    for (const options of [...requests, { headers: { 'if-none-match': etag } }]) {
      expect(await statusOf('/a.png', '', options)).toBe(451);
      expect(await statusOf('/a.png', 'width=8', options)).toBe(451);
      expect(await statusOf('/b.png', '', options)).toBeLessThan(300);
    }
    expect(await statusOf('/b.png', 'width=8')).toBe(200);
    expect(await statusOf('/b.png', '', { headers: { range: 'bytes=0-3' } })).toBe(206);
  });

  test('are checked without a second body if their site confirms them', async () => {
    const app = await start();
    app.site.handlers.set('/a.png', (request, response) => {
      const isKnown = request.headers['if-none-match'] === '"a"';
      response.writeHead(isKnown ? 304 : 200, { etag: '"a"', 'cache-control': 'no-cache' });
      response.end(isKnown ? undefined : samples.png);
    });
    expect((await app.request('/a.png', 'width=8')).status).toBe(200);
    await block(app, samples.text);
    expect((await app.request('/a.png', 'width=8')).status).toBe(200);
    await block(app, samples.png);
    expect((await app.request('/a.png', 'width=8')).status).toBe(451);
    app.clock.advance(3_600_000);
    expect((await app.request('/a.png', 'width=8')).status).toBe(451);
  });

  test('free their memory after passthrough', async () => {
    const app = await start();
    await block(app, samples.png);
    for (const request of [...requests, { headers: { range: 'bytes=9999999-' } }]) {
      for (const path of ['/a.png', '/b.png']) await app.request(path, '', request);
    }
    await expect.poll(() => memoryBytesOf(app), { timeout: 2_000 }).toBe(0);
  });

  test('occupy passthrough slots while clients are slow', async () => {
    const app = await useExternalApp({ settings, limits: { maxStreams: 1 } });
    const video = Buffer.concat([samples.mp4, Buffer.alloc(20 * 1024 * 1024)]);
    app.site.serve('/slow.mp4', video);
    app.site.serve('/b.png', samples.webp);
    await block(app, samples.png);
    const slow = await app.begin(signedPathOf(app.urlOf('/slow.mp4')));
    slow.pause();
    await expect.poll(() => memoryBytesOf(app)).toBeGreaterThanOrEqual(video.length);
    const waiting = app.request('/b.png');
    expect(await Promise.race([waiting, sleep(300, 'waits')])).toBe('waits');
    slow.destroy();
    expect((await waiting).status).toBe(200);
    await expect.poll(() => memoryBytesOf(app)).toBe(0);
  });
});

test.each([
  ['keys', {}, 1],
  ['sha256', {}, 1],
  ['keys', { range: 'bytes=290000-290007' }, 1],
  ['sha256', { range: 'bytes=290000-290007' }, 1],
  ['keys', { range: 'bytes=290000-290007' }, 2],
  ['sha256', { range: 'bytes=290000-290007' }, 2],
])(
  'a block by %s rejects an original that is being opened: with %j, during read %i',
  async (member, headers, at) => {
    const app = await useTestApp({ settings });
    app.originals.put('attachments/1/2/a.png', large);
    await block(app, samples.text);
    expect((await app.get('/attachments/1/2/a.png')).statusCode).toBe(200);
    let reads = 0;
    app.originals.alter = async (opened) => {
      reads += 1;
      const value = member === 'keys' ? 'attachments/1/2/a.png' : hash('sha256', large);
      if (reads === at) await sendToAdmin(app, '/blocks', { [member]: [value] });
      return opened;
    };
    expect((await app.get('/attachments/1/2/a.png', headers)).statusCode).toBe(451);
    expect(reads).toBe(at);
    await expect.poll(() => app.originals.openBodies).toBe(0);
  },
);

test('an original that is replaced during each read gets a 502', async () => {
  const app = await useTestApp({ settings });
  app.originals.put('attachments/1/2/a.txt', samples.text);
  await block(app, samples.png);
  let reads = 0;
  app.originals.alter = (object) => {
    reads += 1;
    return { ...object, etag: `state-${reads}` };
  };
  const { statusCode, json, headers } = await app.get('/attachments/1/2/a.txt');
  expect([statusCode, json().code]).toEqual([502, 'ORIGIN_ERROR']);
  expect(headers['cache-control']).toBe('no-store');
  await expect.poll(() => app.originals.openBodies).toBe(0);
});
