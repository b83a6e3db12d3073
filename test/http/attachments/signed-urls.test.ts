import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import { collect, parseResponse, sendBytes } from '../../support/http/raw-http.ts';
import type { LaneRenderer } from '../../support/render-slots.ts';
import { enforced, signatureOf, signedPath } from '../../support/signed-urls.ts';
import { metricsSettings, scrape } from '../../support/telemetry/prometheus-text.ts';
import { samples, useTestApp } from '../../support/test-app.ts';

// Signatures and rejections: test/surface and docs/attachment-vectors.json. These need a clock or several requests.

/** Start of each test and expiry of its URLs, in Unix time. */
const now = Date.UTC(2026, 0, 1) / 1000;
const later = now + 3_600;
const key = 'attachments/1/2/photo.png';
const YEAR = 'public, max-age=31536000, immutable';
const RENDERING = 'width=20&format=webp';

/** Starts a service that requires signatures, with a clock that tests can set. */
async function start(settings = {}, renderer?: LaneRenderer) {
  const service = { time: now };
  const app = await useTestApp({
    settings: { ...enforced, ...settings },
    wallClock: () => service.time * 1000,
    logged: 'debug',
    ...(renderer && { renderer }),
  });
  app.originals.put(key, samples.png);
  app.originals.put('attachments/1/2/text.png', samples.text);
  app.originals.put('attachments/1/2/cut.png', samples.png.subarray(0, 60));
  const request = async (path: string) => {
    const { status, headers } = await app.send('GET', path);
    return [status, headers['cache-control']];
  };
  return Object.assign(service, { app, request });
}

describe('a signed URL', () => {
  test('can be cached until one second before it expires', async () => {
    const unsigned = signatureOf(key, later, 'x'.repeat(32));
    const wrong = signedPath(key, later, 'width=0');
    const service = await start();
    for (const [path, time, status, age] of [
      ...['', RENDERING].flatMap((query) => {
        const path = signedPath(key, later, query);
        return [
          [path, now, 200, 3_599],
          [path, now + 0.001, 200, 3_598],
          [path, later - 1, 200, 0],
          [path, later - 0.001, 200, 0],
          [path, later, 404, 30],
        ] as const;
      }),
      [wrong, later - 41, 400, 40],
      [signedPath('attachments/1/2/text.png', later, 'width=9'), later - 41, 415, 40],
      [signedPath('attachments/1/2/cut.png', later, 'width=9'), later - 41, 422, 40],
      [signedPath('attachments/1/2/cut.png', later + 900, 'width=9'), later - 41, 422, 300],
      // Rejected before its signature is checked, so the response is the same for any signature.
      [`/${key}?width=0&${unsigned}`, later - 41, 400, 40],
      [`/${key}?${unsigned}`, later - 41, 404, 30],
      // Expired: nothing that it permitted is cached.
      [wrong, later + 1, 400, 300],
      [`/${key}?width=0&${unsigned}`, later + 1, 400, 300],
    ] as const) {
      service.time = time;
      expect(await service.request(path), path).toEqual([status, `public, max-age=${age}`]);
    }
  });

  test('is cached no longer than other media', async () => {
    const { request } = await start({ MEDIA_MAX_AGE_SECONDS: '60' });
    expect(await request(signedPath(key, later))).toEqual([200, 'public, max-age=60']);
  });

  test.each([200, 422])(
    'that expires during its render returns an uncacheable %s',
    async (status) => {
      const render = async () => {
        service.time = later + 1;
        if (status === 200) return samples.webp;
        throw new MediaError('UNPROCESSABLE_MEDIA', { cause: new Error('scripted') });
      };
      const service = await start({}, { render });
      const path = signedPath(key, later, RENDERING);
      expect(await service.request(path)).toEqual([status, 'public, max-age=0']);
      expect(await service.request(path)).toEqual([404, 'public, max-age=30']);
    },
  );

  test('that expires during a transfer does not end the transfer', async () => {
    const service = await start();
    const film = Buffer.alloc(32 * 2 ** 20, 'film');
    service.app.originals.put('attachments/1/2/film.bin', film);
    const path = signedPath('attachments/1/2/film.bin', later);
    const socket = await service.app.begin(path);
    await once(socket, 'readable');
    expect(service.app.originals.openBodies).toBe(1);
    service.time = later + 1;
    expect(await service.request(path)).toEqual([404, 'public, max-age=30']);
    const { bytes } = collect(socket);
    await expect.poll(() => bytes().length).toBeGreaterThan(film.length);
    const { status, body } = parseResponse(bytes());
    expect([status, body.equals(film)]).toEqual([200, true]);
  });

  // Long targets are not cached, short ones are.
  test.each([key, `attachments/1/2/${'n'.repeat(250)}.png`])(
    'is checked each time, although its rendering is shared: %s',
    async (of) => {
      const service = await start();
      const { app, request } = service;
      app.originals.put(of, samples.png);
      const path = signedPath(of, later, RENDERING);
      for (let attempt = 0; attempt < 3; attempt += 1) expect((await request(path))[0]).toBe(200);
      expect((await request(path.replace('hm=', 'hm=0').slice(0, -1)))[0]).toBe(404);
      expect(await request(signedPath(of, later + 9, RENDERING))).toEqual([
        200,
        'public, max-age=3608',
      ]);
      expect(await request(path)).toEqual([200, 'public, max-age=3599']);
      service.time = later;
      expect((await request(path))[0]).toBe(404);
      expect(app.renderer.renders).toBe(1);
    },
  );
});

describe('a rejected URL', () => {
  const refusals: readonly ((of: string) => string)[] = [
    () => '',
    (of) => `${signatureOf(of, later)}&hm=${'0'.repeat(64)}`,
    (of) => signatureOf(`${of}2`, later),
    (of) => signatureOf(of, later, 'x'.repeat(32)),
    (of) => signatureOf(of, now),
  ];

  /** Serializes a response except for date, id and durations. */
  const requestRaw = async (port: number, method: string, target: string, fields = '') => {
    const head = `Host: cdn.example\r\nConnection: close\r\n${fields}`;
    const bytes = await sendBytes(port, `${method} ${target} HTTP/1.1\r\n${head}\r\n`);
    return bytes
      .toString('latin1')
      .replace(/^(date|x-request-id): \S.*$/gim, '$1: …')
      .replaceAll(/;dur=[\d.]+/g, ';dur=…');
  };

  // The conversations of test/surface compare the headers for other methods, ranges and conditions.
  test.each([
    ['GET', '', ''],
    ['HEAD', RENDERING, ''],
    ['GET', '', 'Range: bytes=99999999-\r\n'],
    ['GET', RENDERING, 'If-None-Match: <its tag>\r\n'],
  ])(
    'gets the response of a missing attachment without a request for the object: %s %s %s',
    async (...row) => {
      const [method, query, fields] = row;
      const { app } = await start();
      const port = await app.listen();
      const target = (of: string, signature: string) => `/${of}?${query}&${signature}`;
      for (const [index, refuse] of refusals.entries()) {
        const [present = '', absent = '', missing = ''] = [1, 2, 3].map(
          (channel) => `attachments/${channel}/${index}/photo.png`,
        );
        app.originals.put(present, samples.png);
        const shown = await app.send('GET', target(present, signatureOf(present, later)));
        const sent = fields.replace('<its tag>', shown.headers.etag ?? '""');
        const reads = app.originals.reads.get(present);
        for (const _ of [1, 2]) {
          const good = target(missing, signatureOf(missing, later));
          const expected = await requestRaw(port, method, good, sent);
          for (const of of [present, absent]) {
            expect(await requestRaw(port, method, target(of, refuse(of)), sent)).toBe(expected);
          }
        }
        expect(app.originals.reads.get(present)).toBe(reads);
      }
    },
  );

  test('reads a key that no original can have, and is remembered like a missing key', async () => {
    const { app, request } = await start();
    for (const refuse of refusals) await request(`/${key}?width=9&${refuse(key)}`);
    const absent = expect.stringMatching(/^attachments\/x[0-9a-f]+\/x[0-9a-f]+\/[0-9a-f]+$/);
    expect([...app.originals.reads]).toEqual([[absent, 1]]);
    app.clock.advance(30_001);
    await request(`/${key}?width=9`);
    expect([...app.originals.reads]).toEqual([[absent, 2]]);
  });

  test('does not disturb a concurrent valid request, and fails if the storage fails', async () => {
    const { app, request } = await start();
    const paths = [signedPath(key, later, 'width=30'), `/${key}?width=30`];
    const responses = await Promise.all([...paths, ...paths].map(request));
    expect(responses.map(([status]) => status)).toEqual([200, 404, 200, 404]);
    app.clock.advance(30_001);
    app.originals.failure = new MediaError('ORIGIN_ERROR');
    for (const query of ['', 'width=30'])
      expect(await request(`/${key}?${query}`)).toEqual([502, 'no-store']);
  });
});

describe('URLs are counted by verdict', () => {
  const [query, age] = [signatureOf(key, later), 'public, max-age=3599'];
  const urls: Readonly<Record<string, readonly [query: string, reported: string]>> = {
    valid: [query, age],
    missing: ['', YEAR],
    malformed: ['hm=0', YEAR],
    mismatch: [signatureOf('attachments/1/2/x', later), age],
    expired: [signatureOf(key, now), 'public, max-age=0'],
  };

  test.each(['off', 'report', 'enforce'])('with ATTACHMENT_SIGNING=%s', async (mode) => {
    const service = await start({ ...metricsSettings, ATTACHMENT_SIGNING: mode });
    const { app, request } = service;
    for (const [verdict, [signature, reported]] of Object.entries(urls)) {
      for (const parameters of ['', 'width=20', 'width=20']) {
        const isRefused = mode === 'enforce' && verdict !== 'valid';
        const shown = [200, mode === 'off' ? YEAR : reported];
        const expected = isRefused ? [404, 'public, max-age=30'] : shown;
        expect(await request(`/${key}?${parameters}&${signature}`), verdict).toEqual(expected);
      }
    }
    service.time = later;
    await request(`/${key}?width=20&${query}`);
    const { read } = await scrape(app);
    for (const verdict of Object.keys(urls)) {
      const count = mode === 'off' ? 0 : verdict === 'expired' ? 4 : 3;
      expect(read('darkroom_attachment_signatures_total', { verdict }), verdict).toBe(count);
    }
    await expect.poll(() => app.requests.length).toBe(16);
    const verdicts = new Set(app.requests.map(({ signature }) => signature));
    expect(verdicts).toEqual(new Set(mode === 'off' ? [undefined] : Object.keys(urls)));
  });
});
