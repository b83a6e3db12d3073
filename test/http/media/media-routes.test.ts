import { describe, expect, it } from 'vitest';
import { createApp } from '../../../src/app.ts';
import { readConfig } from '../../../src/config/config.ts';
import { commonHeaders } from '../../support/http/raw-http.ts';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { patient } from '../../support/patient.ts';
import { STARTER } from '../../support/processes/worker-pool.ts';
import { RecordedLog } from '../../support/recorded-log.ts';
import { renewTestApp, samples, useTestApp } from '../../support/test-app.ts';

const app = renewTestApp();

/** The stages that a `Server-Timing` header names, in its order. */
function stagesOf(header: unknown): readonly string[] {
  return String(header)
    .split(', ')
    .map((entry) => entry.replace(/;dur=[\d.]+$/, ''));
}

describe('every resource of contract §1', () => {
  const withHash = ['avatars/1', 'icons/1', 'banners/1', 'splashes/1', 'guilds/1/users/2/avatars'];
  const cases = [
    ...[...withHash, 'guilds/1/users/2/banners'].flatMap((folder) =>
      ['png', 'jpg', 'jpeg', 'webp', 'gif'].map((ext) => [`${folder}/ab`, ext] as const),
    ),
    ...['png', 'jpg', 'jpeg', 'webp'].map((ext) => ['embed-splashes/1/ab', ext] as const),
    ...['png', 'jpg', 'jpeg', 'webp', 'gif'].map((ext) => ['emojis/1', ext] as const),
    ...['webp', 'gif'].map((ext) => ['stickers/1', ext] as const),
  ];

  // The one place where the app makes its own workers, as it does in production.
  it('is served from its origin key, in the format asked for', async () => {
    const origin = new MemoryOrigin();
    const parts = {
      log: new RecordedLog(),
      origin,
      workerFiles: { starterFile: STARTER },
    };
    const { server, close } = await createApp(readConfig({ WORKERS: '1', ...patient }), parts);
    try {
      for (const [key, ext] of cases) {
        origin.put(key, samples.png);
        const response = await server.inject(`/${key}.${ext}?size=16`);
        expect(response.statusCode, `/${key}.${ext}`).toBe(200);
        const format = ext === 'jpg' ? 'jpeg' : ext;
        expect(response.headers['content-type']).toBe(`image/${format}`);
        expect(response.headers).not.toHaveProperty('content-disposition'); // of attachments alone
        expect(response.rawPayload.length).toBeGreaterThan(0);
        expect(response.headers['content-length']).toBe(String(response.rawPayload.length));
      }
      expect([...origin.reads.keys()].sort()).toEqual(
        [...new Set(cases.map(([key]) => key))].sort(),
      );
      expect(parts.log.errors).toEqual([]);
    } finally {
      await close();
    }
  });

  it('finds the original of an animated hash without its mark', async () => {
    app.originals.put('avatars/1/ab', samples.animatedGif);
    const response = await app.get('/avatars/1/a_ab.gif?size=16');
    expect(response.statusCode).toBe(200);
    expect([...app.originals.reads]).toEqual([['avatars/1/ab', 1]]);
  });

  it.each([
    ['byte for byte', 'clip.mp4', samples.mp4, 'video/mp4'],
    ['though it is empty', 'empty', Buffer.alloc(0), 'application/octet-stream'],
    [
      'by the type of its bytes, not of its name',
      'a.png',
      samples.html,
      'text/html; charset=utf-8',
    ],
  ])('serves an attachment %s', async (_, name, bytes, type) => {
    app.originals.put(`attachments/1/2/${name}`, bytes);
    const { statusCode, headers, rawPayload } = await app.get(`/attachments/1/2/${name}`);
    expect(statusCode).toBe(200);
    expect(headers['content-type']).toBe(type);
    expect(rawPayload.equals(bytes)).toBe(true);
    expect(headers['content-length']).toBe(String(bytes.length));
    expect(app.renderer.renders).toBe(0);
  });

  it('transforms an attachment into the format asked for', async () => {
    app.originals.put('attachments/1/2/photo.jpg', samples.jpeg);
    const response = await app.get('/attachments/1/2/photo.jpg?width=20&format=webp');
    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toBe('image/webp');
    expect(response.headers['content-disposition']).toBe('inline; filename="photo.webp"');
  });
});

describe('the headers of a success', () => {
  it.each([
    ['a rendered asset', '/icons/1/ab.webp?size=16'],
    ['an asset passed through', '/icons/1/ab.jpg?size=480&quality=lossless'],
    ['a transformed attachment', '/attachments/1/2/p.jpg?width=16'],
    ['a passthrough attachment', '/attachments/1/2/p.jpg'],
  ])('let %s be kept for ever, embedded anywhere, and run nowhere', async (_, url) => {
    app.originals.put('icons/1/ab', samples.jpeg, new Date(Date.UTC(2024, 1, 29, 12, 30, 15, 999)));
    app.originals.put('attachments/1/2/p.jpg', samples.jpeg, new Date('2024-02-29T12:30:15.999Z'));
    const { statusCode, headers } = await app.get(url);
    expect(statusCode).toBe(200);
    expect(headers).toMatchObject({
      'cache-control': 'public, max-age=31536000, immutable',
      ...commonHeaders,
      'accept-ranges': 'bytes',
      'last-modified': 'Thu, 29 Feb 2024 12:30:15 GMT',
    });
    expect(headers.etag).toMatch(/^"[\x21\x23-\x7e]+"$/); // strong: no W/
    expect(headers).not.toHaveProperty('set-cookie');
    expect(headers).not.toHaveProperty('vary');
  });

  it('follow the configuration', async () => {
    const other = await useTestApp({ settings: { MEDIA_MAX_AGE_SECONDS: '7' } });
    other.originals.put('emojis/1', samples.png);
    const { headers } = await other.get('/emojis/1.png');
    expect(headers['cache-control']).toBe('public, max-age=7, immutable');
  });

  it.each([
    ['/icons/1/ab.webp?size=256', '4', false],
    ['/icons/1/ab.webp?size=256', '0', true],
    ['/icons/1/ab.png?size=64', '0', false],
  ])(
    '%s has other bytes with WEBP_EFFORT=%s, under another tag: %s',
    async (url, effort, differs) => {
      const [usual, other] = [{}, { WEBP_EFFORT: effort }].map(async (settings) => {
        const service = await useTestApp({ settings });
        service.originals.put('icons/1/ab', samples.jpeg);
        return service.get(url);
      });
      const [one, another] = [await usual, await other];
      expect(another?.rawPayload.equals(one?.rawPayload ?? Buffer.alloc(0))).toBe(!differs);
      if (differs) expect(another?.headers.etag).not.toBe(one?.headers.etag);
    },
  );
});

describe('the name and disposition of an attachment', () => {
  it.each([
    ['page.html', samples.html],
    // By its bytes, whatever its name says.
    ['page.png', samples.html],
    // By its name, where its bytes are text.
    ['page.js', samples.text],
  ])('%s is to be saved', async (name, bytes) => {
    app.originals.put(`attachments/1/2/${name}`, bytes);
    const { headers } = await app.get(`/attachments/1/2/${name}`);
    expect(headers['content-disposition']).toBe(`attachment; filename="${name}"`);
  });

  it('keeps any sign of it, passthrough and transformed', async () => {
    const name = '🎉 a"b;c.png';
    app.originals.put(`attachments/1/2/${name}`, samples.png);
    const path = `/attachments/1/2/${encodeURIComponent(name)}`;
    for (const url of [path, `${path}?width=16`]) {
      const { statusCode, headers } = await app.get(url);
      expect(statusCode).toBe(200);
      expect(headers['content-disposition']).toBe(
        `inline; filename="_ a\\"b;c.png"; filename*=UTF-8''%F0%9F%8E%89%20a%22b%3Bc.png`,
      );
    }
  });
});

describe('work that is done once', () => {
  it('a miss is stored, and hit by every URL of the same canonical request', async () => {
    app.originals.put('icons/1/ab', samples.jpeg);
    const first = await app.get('/icons/1/ab.jpg?size=16&v=1');
    expect(first.headers['cache-status']).toBe('darkroom; fwd=miss; stored');
    expect(stagesOf(first.headers['server-timing'])).toEqual([
      'store',
      'origin',
      'queue',
      'render',
    ]);

    for (const url of [
      '/icons/1/ab.jpg?size=16',
      '/icons/1/ab.jpeg?size=16',
      '/icons/1/a_ab.jpg?animated=true&size=16&quality=high',
      '/icons/1/%61b.jpg?v=2&s%69ze=16',
    ]) {
      const again = await app.get(url);
      expect(again.headers['cache-status']).toBe('darkroom; hit');
      expect(stagesOf(again.headers['server-timing'])).toEqual(['store']);
      expect(again.headers.etag).toBe(first.headers.etag);
      expect(again.rawPayload.equals(first.rawPayload)).toBe(true);
    }
    expect(app.renderer.renders).toBe(1);
    expect([...app.originals.reads]).toEqual([['icons/1/ab', 1]]);
  });

  it('a result that passes through waits for no slot and no worker', async () => {
    app.originals.put('emojis/1', samples.png);
    const { headers, rawPayload } = await app.get('/emojis/1.png');
    expect(rawPayload.equals(samples.png)).toBe(true);
    expect(stagesOf(headers['server-timing'])).toEqual(['store', 'origin']);
    expect(app.renderer.renders).toBe(0);
  });

  it('a passthrough attachment enters the origin alone, each time, and is never kept', async () => {
    for (const bytes of [samples.png, samples.pdf]) {
      app.originals.put('attachments/1/2/p.png', bytes);
      const { headers, rawPayload } = await app.get('/attachments/1/2/p.png');
      expect(rawPayload.equals(bytes)).toBe(true);
      expect(stagesOf(headers['server-timing'])).toEqual(['origin']);
      expect(headers['cache-status']).toBe('darkroom; fwd=bypass');
    }
  });

  it('a result larger than the store is served and not said to be stored', async () => {
    const other = await useTestApp({ settings: { CACHE_MEMORY_BYTES: '0' } });
    other.originals.put('icons/1/ab', samples.jpeg);
    const { statusCode, headers } = await other.get('/icons/1/ab.png?size=16');
    expect(statusCode).toBe(200);
    expect(headers['cache-status']).toBe('darkroom; fwd=miss');
  });

  it('500 identical requests at once read one original and render one result', async () => {
    app.originals.put('icons/1/ab', samples.jpeg);
    const responses = await Promise.all(
      Array.from({ length: 500 }, (_, index) =>
        app.get(index % 2 === 0 ? '/icons/1/ab.webp' : `/icons/1/ab.webp?v=${index}`),
      ),
    );
    expect([...app.originals.reads]).toEqual([['icons/1/ab', 1]]);
    expect(app.renderer.renders).toBe(1);
    expect(new Set(responses.map(({ statusCode }) => statusCode))).toEqual(new Set([200]));
    expect(new Set(responses.map(({ headers }) => headers.etag)).size).toBe(1);
    expect(new Set(responses.map(({ rawPayload }) => rawPayload.toString('latin1'))).size).toBe(1);
    const withStatus = (status: string) =>
      responses.filter(({ headers }) => headers['cache-status'] === status);
    expect(withStatus('darkroom; fwd=miss; stored')).toHaveLength(1);
    const followers = withStatus('darkroom; fwd=miss; stored; collapsed');
    expect(followers).toHaveLength(499);
    for (const { headers } of followers) {
      expect(stagesOf(headers['server-timing'])).toEqual(['store']);
    }
  });

  it.each([
    ...['no-cache', 'no-store', 'max-age=0'].map((value) => ({ 'cache-control': value })),
    ...['Bot abc', 'Bearer \u00e9', ''].map((value) => ({ authorization: value })),
    { pragma: 'no-cache' },
  ])('%j of a client costs nothing, and changes nothing', async (headers) => {
    app.originals.put('icons/1/ab', samples.jpeg);
    const plain = await app.get('/icons/1/ab.webp');
    const again = await app.server.inject({ url: '/icons/1/ab.webp', headers });
    expect(again.statusCode).toBe(200);
    expect(again.headers['cache-status']).toBe('darkroom; hit');
    for (const name of ['etag', 'cache-control'] as const) {
      expect(again.headers[name]).toBe(plain.headers[name]);
    }
    expect(app.renderer.renders).toBe(1);
    expect([...app.originals.reads]).toEqual([['icons/1/ab', 1]]);
  });
});
