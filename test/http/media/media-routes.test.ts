import { describe, expect, it } from 'vitest';
import { collect } from '../../support/http/raw-http.ts';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { samples, useTestApp } from '../../support/test-app.ts';

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

it('the time that a part takes the origin includes that of its second read', async () => {
  const app = await useTestApp();
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

it('successes have strong entity tags, the same on every server', async () => {
  const origin = new MemoryOrigin();
  origin.put('icons/1/ab', samples.jpeg);
  origin.put('attachments/1/2/p.jpg', samples.jpeg);
  const [one, other] = [await useTestApp({ origin }), await useTestApp({ origin })];
  for (const url of [
    ...['/icons/1/ab.webp?size=16', '/icons/1/ab.jpg?size=480&quality=lossless'],
    ...['/attachments/1/2/p.jpg?width=16', '/attachments/1/2/p.jpg', '/avatars/3.png'],
  ]) {
    const { etag } = (await one.get(url)).headers;
    expect(etag, url).toMatch(/^"[\x21\x23-\x7e]{16,}"$/);
    expect((await other.get(url)).headers.etag, url).toBe(etag);
  }
});

it('a hit whose head is text already has the very bytes that Node writes field by field', async () => {
  const app = await useTestApp();
  app.originals.put('icons/1/ab', samples.jpeg);
  const url = '/icons/1/ab.webp?size=16';
  await app.get(url);
  const ask = (version: string, field: string) =>
    `GET ${url} HTTP/${version}\r\nHost: a\r\nX-Request-Id: b\r\n${field}\r\n`;
  const { whole } = collect(
    (await app.connect()).end(
      // A client of HTTP/1.0 may not be sent what was prepared for another one.
      ask('1.1', '') + ask('1.0', 'Connection: keep-alive\r\n') + ask('1.1', 'Range: bytes=0-\r\n'),
    ),
  );
  const dates = /^Date: \w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/gm;
  const [first, second, part] = (await whole())
    .toString('latin1')
    .replace(dates, 'Date: …')
    .split(/(?=HTTP\/1\.1 )/);
  expect(first).toContain(
    'Date: …\r\nConnection: keep-alive\r\nKeep-Alive: timeout=72\r\n\r\nRIFF',
  );
  expect(second).toBe(first);
  expect(part).toMatch(/^HTTP\/1\.1 206 /);
});
