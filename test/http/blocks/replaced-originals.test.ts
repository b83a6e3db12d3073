import { hash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { type ExternalApp, useExternalApp } from '../../support/sites/external-app.ts';
import { metricsSettings, sendToAdmin } from '../../support/telemetry/prometheus-text.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { samples, type TestApp, useTestApp, withDecoder } from '../../support/test-app.ts';

// Contract §15: the service checks the bytes that it renders or sends, not those of an earlier request.

let settings: Readonly<Record<string, string>>;
beforeEach(async () => {
  const { path } = await useTemporaryDirectory();
  settings = {
    ...metricsSettings,
    BLOCKLIST: 'filesystem',
    BLOCKLIST_FILE: join(path, 'blocks.jsonl'),
    CACHE_ORIGINALS_BYTES: '0',
  };
});

const block = async (app: Pick<TestApp, 'requestAdmin'>, ...blocked: readonly Uint8Array[]) => {
  const sha256 = blocked.map((bytes) => hash('sha256', bytes));
  expect((await sendToAdmin(app, '/blocks', { sha256 })).statusCode).toBe(200);
};

const requests = [
  ['GET', {}],
  ['HEAD', {}],
  ['GET', { range: 'bytes=0-3' }],
  ['GET', { range: 'bytes=4-' }],
  ['GET', { 'if-none-match': '"x"' }],
] as const;

describe('an original replaced by a blocked one', () => {
  const key = 'attachments/1/2/a.png';

  test.each([
    ['a rendering', 'icons/1/ab12', '/icons/1/ab12.webp?size=16', '/icons/1/ab12.webp?size=32'],
    ['an original sent unchanged', key, `/${key}`, `/${key}`],
    [
      'a poster',
      'attachments/1/2/a.mp4',
      '/attachments/1/2/a.mp4',
      '/attachments/1/2/a.mp4?format=webp',
    ],
  ])(
    'gets a 451 while the record of the earlier original is fresh: %s',
    async (_, name, before, after) => {
      const app = await useTestApp({ settings: { ...settings, ...withDecoder } });
      const blocked = name.endsWith('.mp4') ? samples.mp4 : samples.jpeg;
      app.originals.put(name, samples.png);
      await block(app, blocked);
      expect((await app.get(before)).statusCode).toBe(200);
      app.originals.put(name, blocked);
      expect((await app.get(after)).statusCode).toBe(451);
    },
  );

  test.each(requests)(
    'gets a 451 even if its key had another original while it was hashed: %s %j',
    async (method, headers) => {
      const app = await useTestApp({ settings });
      app.originals.put(key, samples.jpeg);
      await block(app, samples.jpeg);
      let reads = 0;
      app.originals.alter = (opened) => {
        reads += 1;
        app.originals.put(key, reads === 1 ? samples.png : samples.jpeg);
        return opened;
      };
      expect((await app.send(method, `/${key}`, headers)).status).toBe(451);
      expect((await app.get(`/${key}?format=webp&width=8`)).statusCode).toBe(451);
    },
  );
});

test('metadata contains no bytes of a blocked original, regardless of when it was replaced', async () => {
  const token = 't'.repeat(32);
  const app = await useTestApp({
    settings: { ...settings, INTERNAL_PORT: '0', INTERNAL_TOKEN: token, S3_BUCKET: 'cdn' },
  });
  await block(app, samples.jpeg);
  const statuses: unknown[] = [];
  for (let at = 0; at < 6; at += 1) {
    const key = `attachments/1/${at + 2}/a.png`;
    let reads = 0;
    app.originals.put(key, samples.png);
    app.originals.alter = (opened) => {
      if (reads === at) app.originals.put(key, samples.jpeg);
      reads += 1;
      return opened;
    };
    const response = await app.internal?.inject({
      method: 'POST',
      url: '/_metadata',
      headers: { authorization: `Bearer ${token}` },
      payload: { version: 2, nsfw: 'allow', type: 's3', bucket: 'cdn', key, with_base64: true },
    });
    statuses.push(response?.statusCode);
    expect(response?.json().base64 ?? '').not.toBe(samples.jpeg.toString('base64'));
  }
  expect(statuses).toContain(451);
  expect(statuses).toContain(200);
});

describe('external media replaced by a blocked original', () => {
  test('get a 451 in a new size', async () => {
    const app = await useExternalApp({ settings });
    app.site.serve('/a.png', samples.png);
    await block(app, samples.jpeg);
    expect((await app.request('/a.png', 'width=8')).status).toBe(200);
    app.site.serve('/a.png', samples.jpeg);
    expect((await app.request('/a.png', 'width=9')).status).toBe(451);
  });

  /** Video that is too large to be read before it is sent. */
  const large = Buffer.concat([samples.mp4, Buffer.alloc(300_000, 'x')]);
  const fields = { etag: '"a"', 'last-modified': new Date(0).toUTCString() };

  const start = async (): Promise<ExternalApp> => {
    const app = await useExternalApp({ settings: { ...settings, MAX_ORIGINAL_BYTES: '100000' } });
    await block(app, samples.jpeg);
    return app;
  };

  test.each([
    ['a length', (response: ServerResponse) => response.setHeader('content-length', large.length)],
    ['chunks', () => undefined],
  ])('are not sent after a first response that is too large to be read: %s', async (_, frame) => {
    const app = await start();
    let fetches = 0;
    app.site.handlers.set('/a.mp4', (_request, response) => {
      fetches += 1;
      if (fetches === 1) frame(response);
      response.writeHead(200, fields).end(fetches === 1 ? large : samples.jpeg);
    });
    const { status, body } = await app.request('/a.mp4');
    expect(status).toBe(200);
    expect(body.equals(large)).toBe(true);
    expect((await app.request('/a.mp4')).status).toBe(451);
  });

  test.each(['bytes=0-', 'bytes=0-9', 'bytes=5-', 'bytes=-20'])(
    'get a 451 for a range, although the original is too large to be read: %s',
    async (range) => {
      const app = await start();
      let fetches = 0;
      app.site.serveRanges('/a.mp4', samples.jpeg, fields);
      const serveBlocked = app.site.handlers.get('/a.mp4') ?? expect.fail();
      app.site.handlers.set('/a.mp4', (request, response) => {
        fetches += 1;
        if (fetches > 1) return serveBlocked(request, response);
        return response.writeHead(200, { ...fields, 'content-length': large.length }).end(large);
      });
      const { status, body } = await app.request('/a.mp4', '', { headers: { range } });
      // The first response may be sent, but no byte of the second one.
      expect([206, 451]).toContain(status);
      const isPartOfFirst = status === 206 && large.includes(body);
      expect(status === 451 || isPartOfFirst).toBe(true);
      expect((await app.request('/a.mp4', '', { headers: { range } })).status).toBe(451);
    },
  );
});
