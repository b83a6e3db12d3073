import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Renderer } from '../../../src/pipeline/ports.ts';
import { parseAnswer } from '../../support/http/raw-http.ts';
import { enforced, SIGNING_KEY, signatureOf, signedPath } from '../../support/signed-urls.ts';
import { metricsSettings, scrape } from '../../support/telemetry/prometheus-text.ts';
import { samples, type TestApp, useTestApp } from '../../support/test-app.ts';
import { later, now } from './refusals.ts';

const key = 'attachments/1/2/photo.png';
const YEAR = 31_536_000;

let app: TestApp;
let time = now;

async function start(
  settings: Readonly<Record<string, string>> = enforced,
  renderer?: Renderer,
): Promise<void> {
  time = now;
  app = await useTestApp({
    settings,
    wallClock: () => time * 1000,
    logged: 'debug',
    ...(renderer && { renderer }),
  });
  app.originals.put(key, samples.png);
  app.originals.put('icons/1/ab', samples.png);
}
beforeEach(() => start());

const get = (path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
  app.send(method, path, headers);
const ageOf = async (path: string, headers = {}) =>
  (await get(path, headers)).headers['cache-control'];

describe('a signed URL', () => {
  test.each(['', 'width=20&format=webp'])(
    'has all that an unsigned one had (%s)',
    async (query) => {
      await start({});
      const before = await get(`/${key}?${query}`);
      const part = await get(`/${key}?${query}`, { Range: 'bytes=5-9' });
      await start();
      const path = signedPath(key, later, query);
      const { status, headers, body } = await get(path);
      expect([status, headers.etag, body.equals(before.body)]).toEqual([
        200,
        before.headers.etag,
        true,
      ]);
      const head = await get(path, {}, 'HEAD');
      expect([head.status, head.headers['content-length']]).toEqual([200, String(body.length)]);
      const range = await get(path, { Range: 'bytes=5-9' });
      expect([range.status, range.body.equals(part.body)]).toEqual([206, true]);
      const unchanged = await get(path, { 'If-None-Match': headers.etag ?? '' });
      expect([unchanged.status, unchanged.body.length]).toEqual([304, 0]);
      const beyond = await get(path, { Range: 'bytes=9999999-' });
      expect(beyond.status).toBe(416);
      for (const response of [headers, head.headers, range.headers, unchanged.headers]) {
        expect(response['cache-control']).toBe('public, max-age=3599');
      }
    },
  );

  test('may be kept until it ends, and a second less', async () => {
    for (const query of ['', 'width=20&format=webp']) {
      time = now;
      const path = signedPath(key, later, query);
      expect(await ageOf(path)).toBe('public, max-age=3599');
      time = now + 0.001;
      expect(await ageOf(path)).toBe('public, max-age=3598');
      time = later - 1;
      expect(await ageOf(path)).toBe('public, max-age=0');
      time = later - 0.001;
      expect(await ageOf(path)).toBe('public, max-age=0');
    }
  });

  test('is kept no longer than media are', async () => {
    await start({ ...enforced, MEDIA_MAX_AGE_SECONDS: '60' });
    expect(await ageOf(signedPath(key, later))).toBe('public, max-age=60');
  });

  test('shares what was made for another one', async () => {
    const [one, other] = [
      signedPath(key, later, 'width=20'),
      signedPath(key, later + 9, 'width=20'),
    ];
    const first = await get(one);
    const second = await get(other);
    expect(second.headers['cache-status']).toBe('darkroom; hit');
    expect(second.headers['cache-control']).toBe('public, max-age=3608');
    expect(second.headers.etag).toBe(first.headers.etag);
    expect(app.renderer.renders).toBe(1);
    expect(await ageOf(one)).toBe('public, max-age=3599');
  });

  test('is long and popular: it is still checked each time', async () => {
    const long = `attachments/1/2/${'n'.repeat(250)}.png`;
    app.originals.put(long, samples.png);
    const path = signedPath(long, later, 'width=20');
    for (let turn = 0; turn < 2; turn += 1) expect((await get(path)).status).toBe(200);
    expect((await get(path.replace('hm=', 'hm=0').slice(0, -1))).status).toBe(404);
    time = later;
    expect((await get(path)).status).toBe(404);
  });

  test('of a data export has no end', async () => {
    const hm = createHmac('sha256', SIGNING_KEY)
      .update(`attachment-url-v1\n00000000\n6920f000\ndp\n${key}`)
      .digest('hex');
    time = now + 20 * YEAR;
    const path = `/${key}?ex=0&is=6920f000&uc=dp&hm=${hm}`;
    expect(await ageOf(path)).toBe(`public, max-age=${YEAR}`);
  });

  test('that ends in the middle of a transfer lets it go on to its end', async () => {
    const large = 'attachments/1/2/film.bin';
    const film = Buffer.alloc(32 * 2 ** 20, 'film');
    app.originals.put(large, film);
    const socket = await app.connect();
    const path = signedPath(large, later);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: cdn.example\r\nConnection: close\r\n\r\n`);
    await once(socket, 'readable');
    expect(app.originals.openBodies).toBe(1);
    time = later + 1;
    expect((await get(path)).status).toBe(404);
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk as Buffer);
    const { status, body } = parseAnswer(Buffer.concat(chunks));
    expect([status, body.equals(film)]).toEqual([200, true]);
  });

  test('that ends while it is being rendered is shown what was made, and lets nobody keep it', async () => {
    const renderer = {
      render: async () => {
        time = later + 1;
        return samples.webp;
      },
    };
    await start(enforced, renderer);
    const path = signedPath(key, later, 'width=20&format=webp');
    const { status, headers } = await get(path);
    expect([status, headers['cache-control']]).toEqual([200, 'public, max-age=0']);
    expect((await get(path)).status).toBe(404);
  });

  test('is asked of nothing but attachments', async () => {
    for (const path of ['/icons/1/ab.png?size=16', '/avatars/1.png']) {
      expect((await get(path)).status).toBe(200);
    }
    expect(await ageOf('/icons/1/ab.png?size=16')).toBe(`public, max-age=${YEAR}, immutable`);
  });

  test('is in the log by its verdict', async () => {
    await get(signedPath(key, later, 'width=20'));
    await get(`/${key}?width=20`);
    await expect.poll(() => app.requests.length).toBe(2);
    const asset = `${key}?width=20&height=&format=&quality=lossless&animated=false`;
    expect(app.requests).toMatchObject([
      { signature: 'valid', status: 200, asset },
      { signature: 'missing', status: 404, asset, code: 'UNKNOWN_MEDIA' },
    ]);
  });
});

describe('switched off', () => {
  test('a signature is what any unknown parameter is, whatever it says', async () => {
    await start({ ATTACHMENT_SIGNING_KEYS: SIGNING_KEY });
    for (const query of ['', signatureOf(key, now - 9), 'ex=1&ex=2&hm', 'uc=xx']) {
      const { status, headers } = await get(`/${key}?${query}`);
      expect([status, headers['cache-control']]).toEqual([
        200,
        `public, max-age=${YEAR}, immutable`,
      ]);
    }
    expect(app.requests.some((line) => 'signature' in line)).toBe(false);
  });
});

describe('reported', () => {
  const report = { ...enforced, ATTACHMENT_SIGNING: 'report', ...metricsSettings };
  const urls: Readonly<Record<string, { readonly query: string; readonly age: string }>> = {
    valid: { query: signatureOf(key, later), age: 'public, max-age=3599' },
    missing: { query: '', age: `public, max-age=${YEAR}, immutable` },
    malformed: { query: 'hm=0', age: `public, max-age=${YEAR}, immutable` },
    mismatch: { query: signatureOf('attachments/1/2/x', later), age: 'public, max-age=3599' },
    expired: { query: signatureOf(key, now), age: 'public, max-age=0' },
  };

  test('all are served, and counted, however they are served', async () => {
    await start(report);
    for (const { query, age } of Object.values(urls)) {
      for (const parameters of ['', 'width=20', 'width=20']) {
        const { status, headers } = await get(`/${key}?${parameters}&${query}`);
        expect([status, headers['cache-control']]).toEqual([200, age]);
      }
    }
    const { read } = await scrape(app);
    for (const verdict of Object.keys(urls)) {
      expect(read('darkroom_attachment_signatures_total', { verdict }), verdict).toBe(3);
    }
  });

  test('a hit that ends is counted as such', async () => {
    await start(report);
    const path = signedPath(key, later, 'width=20');
    for (const at of [now, now, later]) {
      time = at;
      expect((await get(path)).status).toBe(200);
    }
    const { read } = await scrape(app);
    expect(read('darkroom_attachment_signatures_total', { verdict: 'valid' })).toBe(2);
    expect(read('darkroom_attachment_signatures_total', { verdict: 'expired' })).toBe(1);
  });

  test('enforced, they are counted, too', async () => {
    await start({ ...report, ATTACHMENT_SIGNING: 'enforce' });
    for (const { query } of Object.values(urls)) await get(`/${key}?${query}`);
    const { read } = await scrape(app);
    for (const verdict of Object.keys(urls)) {
      expect(read('darkroom_attachment_signatures_total', { verdict }), verdict).toBe(1);
    }
  });
});
