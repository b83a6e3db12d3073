import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect as connectTls, type SecureVersion, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../support/http/http-client.ts';
import { useStack } from './stack.ts';

const stack = await useStack();

test('the configuration starts without a warning', () => {
  expect(stack.nginx.log()).not.toMatch(/\[(warn|error|crit|alert|emerg)\]/);
});

describe('TLS', () => {
  async function handshake(version: SecureVersion): Promise<TLSSocket> {
    const { port, certificate: ca } = stack.nginx;
    const socket = connectTls({
      ...{ host: '127.0.0.1', port, ca, ALPNProtocols: ['h2', 'http/1.1'] },
      ...{ minVersion: version, maxVersion: version },
      // Lets this client speak what its OpenSSL would refuse by itself.
      ...(version < 'TLSv1.2' && { ciphers: 'DEFAULT@SECLEVEL=0' }),
    });
    await once(socket, 'secureConnect');
    return socket;
  }

  test.each(['TLSv1.2', 'TLSv1.3'] as const)('%s is spoken, with HTTP/2', async (version) => {
    const socket = await handshake(version);
    expect(socket.getProtocol()).toBe(version);
    expect(socket.alpnProtocol).toBe('h2');
    expect(socket.getCipher().name).toMatch(/GCM|CHACHA20/);
    socket.destroy();
  });

  test.each(['TLSv1', 'TLSv1.1'] as const)('%s is refused', async (version) => {
    await expect(handshake(version)).rejects.toThrow(/alert protocol version/);
  });

  test('plain HTTP is sent to where TLS is', async () => {
    const ask = createClient(stack.nginx.plainPort, { keepAlive: false });
    const headers = { Host: 'cdn.example.com' };
    const response = await ask('/avatars/1/ab12.webp?size=64', { headers });
    expect(response.status).toBe(308);
    expect(response.header('location')).toBe('https://cdn.example.com/avatars/1/ab12.webp?size=64');
  });
});

describe('HTTP/2', () => {
  let session: ClientHttp2Session;
  beforeAll(() => {
    const { port, certificate: ca } = stack.nginx;
    session = connectHttp2(`https://127.0.0.1:${port}`, { ca });
  });
  afterAll(() => {
    session.destroy();
  });

  async function ask(path: string, headers: Record<string, string> = {}) {
    const stream = session.request({ ':path': path, ...headers });
    const [response] = await once(stream, 'response');
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    return { headers: response as Record<string, unknown>, body: Buffer.concat(chunks) };
  }

  test('serves images, parts, heads and errors, a hundred at a time', async () => {
    const { body, header } = await stack.askDirectly('/icons/1/ab12.webp?size=256');
    const images = await Promise.all(
      Array.from({ length: 100 }, () => ask('/icons/1/ab12.webp?size=256')),
    );
    for (const image of images) {
      expect(image.headers).toMatchObject({ ':status': 200, etag: header('etag') });
      expect(image.body.equals(body)).toBe(true);
    }
    const part = await ask('/icons/1/ab12.webp?size=256', { range: 'bytes=10-19' });
    expect(part.headers[':status']).toBe(206);
    expect(part.body).toEqual(body.subarray(10, 20));
    const head = await ask('/icons/1/ab12.webp?size=256', { ':method': 'HEAD' });
    expect(head.headers).toMatchObject({ ':status': 200, 'content-length': String(body.length) });
    const missing = await ask('/icons/1/nothing.webp');
    expect(missing.headers[':status']).toBe(404);
    expect(JSON.parse(missing.body.toString())).toMatchObject({ code: 'UNKNOWN_MEDIA' });
    expect(stack.relay.requestsOf('/icons/1/ab12.webp')).toHaveLength(1);
  });
});

/** Of one connection, of one moment, or of nginx itself. */
const OF_THE_HOP: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'transfer-encoding', 'date', 'server'],
  ...['cache-status', 'server-timing', 'x-request-id'],
]);

describe('what goes through is what Darkroom has said', () => {
  test.each([
    '/avatars/1/ab12.webp?size=256',
    '/avatars/1471234567890123456/a_fedcba9876543210fedcba9876543210.gif?size=128',
    '/avatars/1471234567890123456/a_fedcba9876543210fedcba9876543210.webp?animated=true',
    '/guilds/1/users/1/avatars/ab12.png?size=64',
    '/banners/1472222222222222223/0123456789abcdef0123456789abcdef.jpeg?size=600&quality=low',
    '/stickers/1474444444444444445.webp',
    '/stickers/1.gif?size=160',
    '/emojis/10.webp?animated=true&size=96',
    '/avatars/5.png',
    '/attachments/1/2/waterfall.jpg?width=400&height=100&format=png',
    '/attachments/1/6/moon.gif?width=100&animated=true',
    '/attachments/1/11/caps.avif',
    '/attachments/1/15/clip.mp4',
    '/attachments/1/20/page.html',
    '/attachments/1/21/cat.svg',
    '/attachments/1/8/%D8%B5%D9%88%D8%B1%D8%A9%20%D8%A7%D9%84%D8%B9%D8%A7%D8%A6%D9%84%D8%A9.jpg',
    '/avatars/1/ab12.webp?size=63',
    '/avatars/1/nobody.webp',
    '/attachments/1/14/romeo.txt?width=10',
    '/nothing/here',
  ])('%s', async (target) => {
    const headersOf = ({ headers }: { readonly headers: object }): Record<string, string[]> =>
      Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_THE_HOP.has(name)));
    for (const method of ['GET', 'HEAD', 'GET']) {
      // Compressible or not: Debian's nginx.conf has `gzip on`, which must not reach media.
      const options = { method, headers: { 'Accept-Encoding': 'gzip' } };
      const direct = await stack.askDirectly(target, options);
      const proxied = await stack.ask(target, options);
      expect(proxied.status).toBe(direct.status);
      expect(proxied.body.equals(direct.body)).toBe(true);
      // All of them, each in as many lines.
      expect(headersOf(proxied)).toEqual(headersOf(direct));
    }
  });

  test.each([
    ['OPTIONS', '/avatars/1/ab12.webp', 204],
    ['POST', '/avatars/1/ab12.webp', 405],
    ['DELETE', '/attachments/1/14/romeo.txt', 405],
  ])('%s %s: %i', async (method, target, status) => {
    const direct = await stack.askDirectly(target, { method });
    const proxied = await stack.ask(target, { method });
    expect(proxied.status).toBe(status);
    expect(proxied.body).toEqual(direct.body);
    for (const [name, lines] of Object.entries(direct.headers)) {
      if (!OF_THE_HOP.has(name)) expect(proxied.headers[name], name).toEqual(lines);
    }
    expect(proxied.nginx).toBe('fwd=bypass');
  });
});

describe('what nginx refuses by itself', () => {
  test.each([
    ['an escape that is none', '/avatars/1/%zz.webp', {}, 400],
    ['a NUL', '/avatars/1/%00.webp', {}, 400],
    ['a way out of the root', '/../etc/passwd', {}, 400],
    ['a header that is too long', '/avatars/1/ab12.webp', { Cookie: 'x'.repeat(25_000) }, 400],
    ['a target that is too long', `/avatars/1/${'a'.repeat(25_000)}.webp`, {}, 414],
    ['a body that is too long', '/avatars/1/ab12.webp', { 'Content-Length': '20000' }, 413],
  ])('has the form of the contract: %s', async (_, target, headers, status) => {
    const before = stack.relay.requests.length;
    const response = await stack.ask(target, { headers });
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
    expect(stack.relay.requests).toHaveLength(before);
  });
});
