import { once } from 'node:events';
import { join } from 'node:path';
import { connect as connectTls, type SecureVersion, type TLSSocket } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { edgeSettings } from '../support/edges/edge-app.ts';
import { createClient } from '../support/http/http-client.ts';
import { usePlainNginx } from '../support/processes/nginx.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';
import { useStack } from './stack.ts';

const folder = await useTemporaryFolder();
const stack = await useStack({
  // Nothing is purged: no call is made.
  ...edgeSettings('fastly', { url: 'http://127.0.0.1:9' }),
  BLOCKLIST_FILE: join(folder.path, 'blocks.jsonl'),
});

test('the configuration of nginx starts without a warning', () => {
  expect(stack.nginx.log()).not.toMatch(/\[(warn|error|crit|alert|emerg)\]/);
});

test('nginx passes cache tags on to a CDN before it, and hides them from clients', async () => {
  const { relayPort } = stack;
  const askPlain = createClient((await usePlainNginx(relayPort, relayPort)).port);
  const paths = ['/icons/1/ab12.webp?size=16', '/attachments/1/14/romeo.txt', '/icons/1/none.webp'];
  // From Darkroom, and from the cache of nginx.
  for (const path of [...paths, ...paths]) {
    const tags = (await stack.askDirectly(path)).header('surrogate-key');
    expect(tags.split(' ').length, path).toBeGreaterThan(2);
    expect((await askPlain(path)).header('surrogate-key'), path).toBe(tags);
    expect((await stack.ask(path)).header('surrogate-key'), path).toBe('');
  }
});

describe('TLS at nginx', () => {
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

  test.each(['TLSv1.2', 'TLSv1.3'] as const)('%s is accepted, with HTTP/2', async (version) => {
    const socket = await handshake(version);
    expect(socket.getProtocol()).toBe(version);
    expect(socket.alpnProtocol).toBe('h2');
    expect(socket.getCipher().name).toMatch(/GCM|CHACHA20/);
    socket.destroy();
  });

  test.each(['TLSv1', 'TLSv1.1'] as const)('%s is refused', async (version) => {
    await expect(handshake(version)).rejects.toThrow(/alert protocol version/);
  });

  test('plain HTTP is redirected to HTTPS', async () => {
    const ask = createClient(stack.nginx.plainPort, { pipelining: 0 });
    const headers = { Host: 'cdn.example.com' };
    const response = await ask('/avatars/1/ab12.webp?size=64', { headers });
    expect(response.status).toBe(308);
    expect(response.header('location')).toBe('https://cdn.example.com/avatars/1/ab12.webp?size=64');
  });
});

describe('a request that nginx refuses by itself', () => {
  test.each([
    ['an escape that is none', '/avatars/1/%zz.webp', {}, 400],
    ['a NUL', '/avatars/1/%00.webp', {}, 400],
    ['a way out of the root', '/../etc/passwd', {}, 400],
    ['a header that is too long', '/avatars/1/ab12.webp', { Cookie: 'x'.repeat(25_000) }, 400],
    ['a target that is too long', `/avatars/1/${'a'.repeat(25_000)}.webp`, {}, 414],
    ['a body that is too long', '/avatars/1/ab12.webp', {}, 413],
  ])('has an error body as the contract says: %s', async (_, target, headers, status) => {
    const before = stack.relay.requests.length;
    const body = status === 413 ? 'x'.repeat(20_000) : undefined;
    const response = await stack.ask(target, { headers, body });
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
