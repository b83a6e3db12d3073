import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect as connectTls, type SecureVersion, type TLSSocket } from 'node:tls';
import { describe, expect, test, vi } from 'vitest';
import { cdnSettings } from '../support/cdn/cdn-app.ts';
import { type ClientResponse, createClient } from '../support/http/http-client.ts';
import { usePlainNginx } from '../support/processes/nginx.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';
import { RELAY_KEY, uploadTarget } from '../support/uploads/relay-app.ts';
import { useStack } from './stack.ts';

const MEBIBYTE = 1024 * 1024;
const directory = await useTemporaryDirectory();
const stack = await useStack({
  // Nothing is purged, so the API is never called.
  ...cdnSettings('fastly', { url: 'http://127.0.0.1:9' }),
  BLOCKLIST_FILE: join(directory.path, 'blocks.jsonl'),
  RELAY_SIGNING_KEYS: RELAY_KEY,
  RELAY_MAX_BYTES: '600000000',
});

test('the configuration of nginx starts without a warning', () => {
  expect(stack.nginx.log()).not.toMatch(/\[(warn|error|crit|alert|emerg)\]/);
});

test('nginx passes cache tags to a CDN in front of it, and hides them from clients', async () => {
  const { relayPort } = stack;
  const requestPlain = createClient((await usePlainNginx(relayPort, relayPort)).port);
  const paths = ['/icons/1/ab12.webp?size=16', '/attachments/1/14/romeo.txt', '/icons/1/none.webp'];
  // From Darkroom, and from the cache of nginx.
  for (const path of [...paths, ...paths]) {
    const tags = (await stack.requestDirectly(path)).header('surrogate-key');
    expect(tags.split(' ').length, path).toBeGreaterThan(2);
    expect((await requestPlain(path)).header('surrogate-key'), path).toBe(tags);
    expect((await stack.request(path)).header('surrogate-key'), path).toBe('');
  }
});

describe('TLS at nginx', () => {
  async function handshake(version: SecureVersion): Promise<TLSSocket> {
    const { port, certificate: ca } = stack.nginx;
    const socket = connectTls({
      ...{ host: '127.0.0.1', port, ca, ALPNProtocols: ['h2', 'http/1.1'] },
      ...{ minVersion: version, maxVersion: version },
      // Permits versions that OpenSSL's defaults reject.
      ...(version < 'TLSv1.2' && { ciphers: 'DEFAULT@SECLEVEL=0' }),
    });
    await once(socket, 'secureConnect');
    return socket;
  }

  test.each(['TLSv1.2', 'TLSv1.3'] as const)('%s is accepted, with HTTP/2', async (version) => {
    const socket = await handshake(version);
    expect(socket.getProtocol()).toBe(version);
    expect(socket.alpnProtocol).toBe('h2');
    expect(socket.getCipher().name).toMatch(/GCM|CHACHA20/);
    socket.destroy();
  });

  test.each(['TLSv1', 'TLSv1.1'] as const)('%s is rejected', async (version) => {
    await expect(handshake(version)).rejects.toThrow(/alert protocol version/);
  });

  test('plain HTTP is redirected to HTTPS', async () => {
    const request = createClient(stack.nginx.plainPort, { pipelining: 0 });
    const headers = { Host: 'cdn.example.com' };
    const response = await request('/avatars/1/ab12.webp?size=64', { headers });
    expect(response.status).toBe(308);
    expect(response.header('location')).toBe('https://cdn.example.com/avatars/1/ab12.webp?size=64');
  });
});

const avatar = '/avatars/1/ab12.webp';

test.each([
  [400, 'an invalid escape', '/avatars/1/%zz.webp', {}],
  [400, 'a NUL', '/avatars/1/%00.webp', {}],
  [400, 'a path outside the root', '/../etc/passwd', {}],
  [400, 'a header that is too long', avatar, { headers: { Cookie: 'x'.repeat(25_000) } }],
  [414, 'a target that is too long', `/avatars/1/${'a'.repeat(25_000)}.webp`, {}],
  [413, 'a body that is too long', avatar, { body: 'x'.repeat(20_000) }],
])('nginx itself returns the error %i of the contract for %s', async (status, _, target, sent) => {
  const response = await stack.request(target, sent);
  expect(response.status).toBe(status);
  expect(JSON.parse(response.body.toString())).toMatchObject({
    code: 'INVALID_FORM_BODY',
    errors: [],
  });
  expect(response.headers).toMatchObject({
    'cache-control': ['no-store'],
    'content-type': ['application/json; charset=utf-8'],
    'x-content-type-options': ['nosniff'],
    'content-security-policy': ["default-src 'none'; sandbox"],
    'cross-origin-resource-policy': ['cross-origin'],
    'access-control-allow-origin': ['*'],
    'x-request-id': [expect.stringMatching(/^[\da-f]{32}$/)],
    server: ['nginx'],
  });
  expect(response.headers['cache-status']).toBeUndefined();
  expect(stack.relay.requests).toHaveLength(0);
});

describe('an upload through nginx', () => {
  async function upload(
    target: string,
    headers: Readonly<Record<string, string | number>>,
    pieces: readonly Buffer[] = [],
    afterFirst?: () => Promise<void>,
  ) {
    const { port, certificate: ca } = stack.nginx;
    const sent = request({ port, host: '127.0.0.1', ca, method: 'PUT', path: target, headers });
    sent.on('error', () => undefined);
    const answer = once(sent, 'response');
    for (const [index, piece] of pieces.entries()) {
      sent.write(piece);
      if (index === 0) await afterFirst?.();
    }
    sent.end();
    const [response] = (await answer) as [IncomingMessage];
    return { status: response.statusCode, headers: response.headers, body: await text(response) };
  }

  const hasReachedDarkroom = () => expect.poll(() => stack.relay.requests.length).toBe(1);

  test.each([
    ['with its length', { 'Content-Length': 2 * MEBIBYTE }],
    ['in chunks', {}],
  ])('reaches Darkroom while it is sent, with only its type: %s', async (name, length) => {
    const key = `attachments/1/1/${name} é.bin`;
    const type = { 'Content-Type': 'video/mp4' };
    const others = { Cookie: 'a=b', Authorization: 'Bearer x' };
    const response = await upload(
      uploadTarget(key),
      { ...length, ...type, ...others },
      [Buffer.alloc(MEBIBYTE), Buffer.alloc(MEBIBYTE)],
      hasReachedDarkroom, // before the upload ends, because nginx must not buffer it
    );
    expect(response).toMatchObject({ status: 200, body: '' });
    expect(response.headers.etag).toMatch(/^"/);
    const { headers = {} } = stack.relay.requests[0] ?? {};
    expect(headers).toMatchObject({ 'content-type': 'video/mp4' });
    for (const other of ['cookie', 'authorization']) expect(headers).not.toHaveProperty(other);
    const path = `/attachments/1/1/${encodeURIComponent(`${name} é.bin`)}`;
    expect((await stack.request(path)).body.length).toBe(2 * MEBIBYTE);
    expect((await upload(uploadTarget(key), { 'Content-Length': 0 })).status).toBe(409);
  });

  test('of an encoded body reaches Darkroom with its encoding, and is rejected there', async () => {
    const encoded = { 'Content-Length': 0, 'Content-Encoding': 'gzip' };
    expect((await upload(uploadTarget('attachments/1/3/a'), encoded)).status).toBe(415);
  });

  test('of more than 500 MiB is rejected with the error of the contract', async () => {
    const length = { 'Content-Length': 500 * MEBIBYTE + 1 };
    const { status, body } = await upload(uploadTarget('attachments/1/2/a'), length);
    expect([status, JSON.parse(body).code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
    expect(stack.relay.requests).toHaveLength(0);
  });

  test('can have a capability of 16 KiB', async () => {
    const part = { uploadId: 'x'.repeat(11_500), partNumber: 1 };
    const target = uploadTarget('attachments/1/4/a', { part });
    const { status, headers } = await upload(target, { 'Content-Length': 0 });
    expect([status, headers['cache-control']]).toEqual([403, 'no-store']);
  });

  test('is not sent a second time after Darkroom has closed the connection', async () => {
    const pieces = [Buffer.alloc(1_000), Buffer.alloc(1_000)];
    const { status } = await upload(uploadTarget('attachments/1/3/a'), {}, pieces, async () => {
      await hasReachedDarkroom();
      await stack.stopDarkroom();
    });
    expect(status).toBe(502);
    expect(stack.relay.requests).toHaveLength(1);
    await stack.startDarkroom();
  });
});

describe('the log of nginx', () => {
  /** Waits for the log line of a response, by its id. */
  const findLine = ({ header }: ClientResponse) =>
    vi.waitFor(() => {
      const lines = stack.nginx.accessLog().split('\n');
      const own = lines.filter((line) => line.includes(`"${header('x-request-id')}"`));
      expect(own).toHaveLength(1);
      return JSON.parse(own.join());
    }, 5_000);

  test('has a line for each request, with the id that the client and Darkroom see', async () => {
    const target = '/emojis/5.webp?size=48';
    const headers = { 'User-Agent': 'a "quoted" agent' };
    const miss = await stack.request(target, { headers });
    const line = await findLine(miss);
    expect(line).toMatchObject({
      client: '127.0.0.1',
      request: `GET ${target} HTTP/1.1`,
      status: '200',
      bytes: miss.body.length,
      seconds: expect.any(Number),
      cache: 'MISS',
      upstream: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      upstreamStatus: '200',
      upstreamSeconds: expect.stringMatching(/^\d+\.\d{3}$/),
      userAgent: headers['User-Agent'],
    });
    const hit = await findLine(await stack.request(target));
    expect(hit).toMatchObject({ status: '200', cache: 'HIT', upstream: '', upstreamStatus: '' });
    expect(hit.id).not.toBe(line.id);
    const refused = await findLine(await stack.request('/emojis/5.webp?size=47'));
    expect(refused.status).toBe('400');
    // An error has one request from each of nginx's two caches.
    const ids = stack.relay.requests.map((forwarded) => forwarded.headers['x-request-id']);
    expect(ids).toEqual([line.id, refused.id, refused.id]);
  });

  const hm = 'ab'.repeat(32);
  const photo = '/attachments/1/1/country-lane.jpg';

  test.each([
    [`${photo}?hm=${hm}`, `${photo}?hm=[redacted]`],
    [`${photo}?width=69&ex=1&hm=${hm}&is=2`, `${photo}?hm=[redacted]&width=69`],
    [`${photo}?width=69&h%6D=${hm}`, `${photo}?hm=[redacted]&width=69`],
    [`${photo}?hm=1&x=2&%68m=${hm}`, `${photo}?hm=[redacted]`],
    [`/external/${hm}/v2/abc?width=9`, '/external/[redacted]/v2/abc?width=9'],
    [`/external/${hm}`, '/external/[redacted]'],
    [`/v1/relay${photo}?t=${hm}&uploadId=1`, `/v1/relay${photo}?[redacted]`],
    // Requests that nginx itself rejects are logged, too.
    ...[`${photo}?width=69&v=1`, '/avatars/1/%zz.webp', '/'].map((target) => [target, target]),
  ])('contains no signature or capability: %s', async (target = '', logged) => {
    const response = await stack.request(target);
    expect(await findLine(response)).toMatchObject({
      request: `GET ${logged} HTTP/1.1`,
      status: String(response.status),
    });
    expect(stack.nginx.accessLog() + stack.nginx.log()).not.toContain(hm);
  });

  test('has a line, without signature or capability, also while Darkroom is down', async () => {
    await stack.stopDarkroom();
    for (const target of [`${photo}?width=70&hm=${hm}`, `/external/${hm}/v2/abc`]) {
      const response = await stack.request(target);
      expect(JSON.parse(response.body.toString()).code).toBe('ORIGIN_ERROR');
      expect(await findLine(response)).toMatchObject({
        status: '502',
        upstreamStatus: expect.stringMatching(/502$/), // twice, if a kept-alive connection was tried first
      });
    }
    expect(stack.nginx.accessLog() + stack.nginx.log()).not.toContain(hm);
  });
});
