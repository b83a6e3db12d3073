import { expect, it } from 'vitest';
import { createClient } from '../../support/http/http-client.ts';
import { collect } from '../../support/http/raw-http.ts';
import { samples, useTestApp } from '../../support/test-app.ts';

it('every response has an id, a hit too: that of its request, or a new one', async () => {
  const app = await useTestApp();
  app.originals.put('icons/1/ab', samples.jpeg);
  const client = createClient(await app.listen());
  const url = '/icons/1/ab.webp?size=16';
  const ids = new Set<string>();
  for (const outcome of ['fwd=miss', 'hit', 'hit']) {
    const response = await client(url);
    expect(response.header('cache-status')).toContain(`darkroom; ${outcome}`);
    ids.add(response.header('x-request-id'));
    const named = await client(url, { headers: { 'x-request-id': 'id.of-the_test' } });
    expect(named.header('x-request-id')).toBe('id.of-the_test');
  }
  expect([...ids]).toEqual(
    Array.from({ length: 3 }, () => expect.stringMatching(/^[\da-f-]{36}$/)),
  );
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
