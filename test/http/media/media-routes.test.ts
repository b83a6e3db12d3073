import { expect, it } from 'vitest';
import { collect } from '../../support/http/raw-http.ts';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { samples, useTestApp } from '../../support/test-app.ts';

it('responses have the same entity tags on every server, unless WEBP_EFFORT changes their bytes', async () => {
  const origin = new MemoryOrigin();
  origin.put('icons/1/ab', samples.jpeg);
  origin.put('attachments/1/2/p.jpg', samples.jpeg);
  const environments = [{}, { WEBP_EFFORT: '4' }, { WEBP_EFFORT: '0' }];
  const apps = await Promise.all(environments.map((settings) => useTestApp({ origin, settings })));
  for (const [url, depends] of [
    ['/icons/1/ab.webp?size=256', true],
    ['/icons/1/ab.png?size=64', false],
    ['/icons/1/ab.jpg?size=480&quality=lossless', false],
    ['/attachments/1/2/p.jpg?width=16', false],
    ['/attachments/1/2/p.jpg', false],
    ['/avatars/3.png', false],
  ] as const) {
    const [usual, same, other] = await Promise.all(
      apps.map(async ({ get }) => {
        const { headers, rawPayload } = await get(url);
        return { etag: headers.etag, bytes: rawPayload.toString('base64') };
      }),
    );
    expect(usual?.etag, url).toMatch(/^"[\x21\x23-\x7e]{16,}"$/);
    expect(same).toEqual(usual);
    expect(other?.bytes === usual?.bytes, url).toBe(!depends);
    if (depends) expect(other?.etag).not.toBe(usual?.etag);
  }
});

it('a hit with a preformatted head has the same bytes that Node writes', async () => {
  const app = await useTestApp();
  app.originals.put('icons/1/ab', samples.jpeg);
  const url = '/icons/1/ab.webp?size=16';
  await app.get(url);
  const request = (version: string, field: string) =>
    `GET ${url} HTTP/${version}\r\nHost: a\r\nX-Request-Id: b\r\n${field}\r\n`;
  const { allBytes } = collect(
    (await app.connect()).end(
      // A client of HTTP/1.0 must not receive the preformatted head.
      request('1.1', '') +
        request('1.0', 'Connection: keep-alive\r\n') +
        request('1.1', 'Range: bytes=0-\r\n'),
    ),
  );
  const dates = /^Date: \w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/gm;
  const [first, second, part] = (await allBytes())
    .toString('latin1')
    .replace(dates, 'Date: …')
    .split(/(?=HTTP\/1\.1 )/);
  expect(first).toContain(
    'Date: …\r\nConnection: keep-alive\r\nKeep-Alive: timeout=72\r\n\r\nRIFF',
  );
  expect(second).toBe(first);
  expect(part).toMatch(/^HTTP\/1\.1 206 /);
});
