import { describe, expect, it } from 'vitest';
import { renewTestApp, samples, useTestApp } from '../../support/test-app.ts';

const app = renewTestApp();

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

// What is remembered, joined and done once, the walks of test/cache tell.
describe('the work of a request', () => {
  it('a preflight reads and renders nothing', async () => {
    app.originals.put('icons/1/ab', samples.jpeg);
    for (const target of ['/icons/1/ab.webp', '/icons/9/missing.png', '/attachments/1/2/p.png']) {
      expect((await app.send('OPTIONS', target)).status).toBe(204);
    }
    expect(app.renderer.renders).toBe(0);
    expect([...app.originals.reads]).toEqual([]);
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
