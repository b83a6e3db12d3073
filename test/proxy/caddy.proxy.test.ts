import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { SigningKeys } from '../../src/contract/signing/signing-keys.ts';
import { atEnd } from '../support/at-end.ts';
import { useCaddy } from '../support/processes/caddy.ts';
import { closeServer, listenLocally } from '../support/processes/local-server.ts';
import { useService } from '../support/processes/service-process.ts';
import { SIGNING_KEY } from '../support/signed-urls.ts';

// Caddy with the recommended Caddyfile passes signed targets byte for byte, and does not change HTTP responses.

const service = await useService({ EXTERNAL_SIGNING_KEYS: SIGNING_KEY, TRUST_PROXY: '127.0.0.1' });
const caddy = await useCaddy(Number(new URL(service.origin).port));
const hosts = [
  [`http://127.0.0.1:${caddy.port}`, ''],
  [`http://127.0.0.1:${caddy.mediaPort}`, '/media'],
] as const;
const keys = new SigningKeys([SIGNING_KEY]);
const AVATAR = '/avatars/1/ab12.webp?size=64';

/** Sends an exact request target: a URL parser would normalise it. */
async function requestRaw(port: number, target: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(`GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`);
  return text(socket);
}

test('passes on signed targets byte for byte, also below a path', async () => {
  const received: string[] = [];
  const upstream = createServer(({ url = '' }, response) => {
    received.push(url);
    response.end();
  });
  const port = await listenLocally(upstream);
  atEnd(() => closeServer(upstream));
  const { port: ownPort, mediaPort } = await useCaddy(port);
  const targets = [
    '/external/S/https/media.example.org/a%20b//cat.png',
    '/external/S/%3Fw%3D1%26h%3D2/https/media.example.org/a%20b/cat.png?width=3',
    '/external/S/https/media.example.org/a%2Fb%252F/./x/../y;z=1,2',
    '/external/S/v2/aHR0cHM6Ly9tZWRpYQ?animated=true&x=%2f',
    '/attachments/1/2/a%2Fb%C3%A9.png',
  ];
  for (const target of targets) {
    await requestRaw(ownPort, target);
    await requestRaw(mediaPort, `/media${target}`);
  }
  expect(received).toEqual(targets.flatMap((target) => [target, target]));
});

test.each(hosts)('serves renderings, ranges and 304 at %s%s', async (origin, base) => {
  const own = await fetch(service.origin + AVATAR);
  const bytes = Buffer.from(await own.arrayBuffer());
  const first = await fetch(origin + base + AVATAR);
  expect(first.status).toBe(200);
  expect(Buffer.from(await first.arrayBuffer())).toEqual(bytes);
  for (const name of ['etag', 'cache-control', 'content-length', 'content-security-policy']) {
    expect(first.headers.get(name), name).toBe(own.headers.get(name));
  }
  const etag = first.headers.get('etag') ?? '';
  const request = (headers: Record<string, string>, method = 'GET') =>
    fetch(origin + base + AVATAR, { method, headers });
  expect((await request({ 'if-none-match': etag })).status).toBe(304);
  const range = await request({ range: 'bytes=2-5' });
  expect([range.status, range.headers.get('content-range')]).toEqual([
    206,
    `bytes 2-5/${bytes.length}`,
  ]);
  expect(Buffer.from(await range.arrayBuffer())).toEqual(bytes.subarray(2, 6));
  const head = await request({}, 'HEAD');
  expect(head.headers.get('content-length')).toBe(String(bytes.length));
});

test.each(hosts)('keeps the signature of external media valid at %s%s', async (origin, base) => {
  const port = Number(new URL(origin).port);
  // An address that Darkroom does not connect to: the signature is verified before the address.
  const target = '%3Fw%3D1%26h%3D2/https/10.0.0.1/a%20b//cat.png';
  const path = `/external/${keys.sign(target, 'base64url')}/${target}`;
  const statusOf = (response: string) => response.split(' ', 2)[1];
  expect(statusOf(await requestRaw(port, base + path))).toBe('502');
  expect(statusOf(await requestRaw(port, `${base}${path}x`))).toBe('401');
});

test.each(hosts)('serves default avatars at %s%s', async (origin, base) => {
  const response = await fetch(`${origin}${base}/avatars/0.png`);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/png']);
});
