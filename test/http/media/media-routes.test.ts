import { describe, expect, it } from 'vitest';
import { renewTestApp, samples, useTestApp } from '../../support/test-app.ts';

const app = renewTestApp();

/** The stages that a `Server-Timing` header names, in its order. */
function stagesOf(header: unknown): readonly string[] {
  return String(header)
    .split(', ')
    .map((entry) => entry.replace(/;dur=[\d.]+$/, ''));
}

describe('the headers of a success', () => {
  it('follow the configuration', async () => {
    const other = await useTestApp({
      settings: {
        MEDIA_MAX_AGE_SECONDS: '7',
        DEFAULT_AVATAR_MAX_AGE_SECONDS: '60',
        ROBOTS_TAG: '',
      },
    });
    other.originals.put('emojis/1', samples.png);
    const { headers } = await other.get('/emojis/1.png');
    expect(headers['cache-control']).toBe('public, max-age=7, immutable');
    expect(headers).not.toHaveProperty('x-robots-tag');
    const avatar = await other.get('/avatars/3.png');
    expect(avatar.headers['cache-control']).toBe('public, max-age=60');
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

  it('a HEAD and the GET after it cost one transform, and a preflight reads nothing', async () => {
    app.originals.put('icons/1/ab', samples.jpeg);
    const path = '/icons/1/ab.png?size=20';
    for (const found of ['fwd=miss; stored', 'hit']) {
      const { headers } = await app.send(found === 'hit' ? 'GET' : 'HEAD', path);
      expect(headers['cache-status']).toBe(`darkroom; ${found}`);
    }
    for (const target of ['/icons/1/ab.webp', '/icons/9/missing.png', '/attachments/1/2/p.png']) {
      expect((await app.send('OPTIONS', target)).status).toBe(204);
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

  it('parts cost one render, and of a passthrough attachment none', async () => {
    app.originals.put('icons/1/ab', samples.jpeg);
    app.originals.put('attachments/1/2/clip.mp4', samples.mp4);
    for (const range of ['bytes=0-9', 'bytes=-5']) {
      await app.get('/icons/1/ab.webp?size=20', { range });
      await app.get('/attachments/1/2/clip.mp4', { range });
    }
    expect(app.renderer.renders).toBe(1);
  });

  it('the time that a part takes the origin includes that of its second read', async () => {
    const url = '/attachments/1/2/clip.mp4';
    app.originals.put('attachments/1/2/clip.mp4', samples.mp4);
    app.originals.alter = (object) => {
      app.clock.advance(100);
      return object;
    };
    const originMs = async (range: string) =>
      (await app.get(url, { range })).headers['server-timing'];
    expect(await originMs('bytes=0-9')).toBe('origin;dur=100');
    expect(await originMs(`bytes=${samples.mp4.length - 9}-`)).toBe('origin;dur=200');
    expect(app.originals.reads.get('attachments/1/2/clip.mp4')).toBe(3);
  });
});
