import { expect, test } from 'vitest';
import { samples, useTestApp } from '../../support/test-app.ts';
import { uploadTarget, useRelayApp } from '../../support/uploads/relay-app.ts';

// Contract §14: headers for the clients and CDNs of a platform.

test('a preflight names the headers that clients of the platform announce', async () => {
  const { app } = await useRelayApp();
  const target = uploadTarget('attachments/1/2/a.bin');
  const { status, headers } = await app.send('OPTIONS', target, {
    Origin: 'https://app.example.org',
    'Access-Control-Request-Method': 'PUT',
    'Access-Control-Request-Headers': 'authorization,content-type,x-client-context',
  });
  expect([status, headers['access-control-allow-headers']]).toEqual([
    204,
    'Authorization, Content-Type, Content-Length, X-Fluxer-Features, X-Client-Context, *',
  ]);
  expect(headers['access-control-allow-origin']).toBe('*');
  expect(headers['access-control-expose-headers']?.split(', ')).toContain('ETag');
});

test('none of these headers decides on an upload', async () => {
  const { app } = await useRelayApp();
  const announced = {
    'Content-Length': '0',
    Authorization: 'Bearer nobody',
    'X-Fluxer-Features': 'x',
    'X-Client-Context': 'y',
  };
  const permitted = uploadTarget('attachments/1/2/a.bin');
  expect((await app.send('PUT', permitted, announced)).status).toBe(200);
  const [path = ''] = permitted.split('?');
  expect((await app.send('PUT', path, announced)).status).toBe(401);
});

/** Requests of every kind of caching, hits in memory and errors included. */
const targets = [
  ['/avatars/1/ab12.png', {}],
  ['/avatars/1/ab12.png', {}],
  ['/avatars/1/ab12.png', { Range: 'bytes=0-9' }],
  ['/avatars/1/ab12.png', { 'If-None-Match': '*' }],
  ['/avatars/1/ab12.png', { Range: 'bytes=999999-' }],
  ['/attachments/1/2/a.txt', {}],
  ['/avatars/1.png', {}],
  ['/avatars/1/ab12.png?size=1', {}],
  ['/avatars/1/missing.png', {}],
  ['/attachments/1/2/a.txt?format=png', {}],
] as const;

test.each(['true', 'false'])('CDN_CACHE_CONTROL=%s repeats Cache-Control or not', async (value) => {
  const app = await useTestApp({ settings: { CDN_CACHE_CONTROL: value } });
  app.originals.put('avatars/1/ab12', samples.png);
  app.originals.put('attachments/1/2/a.txt', samples.text);
  const statuses: number[] = [];
  const origin = `http://127.0.0.1:${await app.listen()}`;
  for (const [target, fields] of targets) {
    // Connections are kept, so hits have their prepared heads.
    const { status, headers } = await fetch(origin + target, { headers: fields });
    statuses.push(status);
    const cacheControl = headers.get('cache-control');
    expect(cacheControl, target).toMatch(/^(public, max-age=\d+|no-store)/);
    expect(headers.get('cdn-cache-control'), target).toBe(value === 'true' ? cacheControl : null);
  }
  expect(statuses).toEqual([200, 200, 206, 304, 416, 200, 200, 400, 404, 415]);
});
