import { once } from 'node:events';
import { connect as connectTls } from 'node:tls';
import { beforeAll, describe, expect, test } from 'vitest';
import { connectSecurely } from '../../support/http/raw-http.ts';
import { tlsSettings } from '../../support/http/tls-files.ts';
import { samples, shareTestApp } from '../../support/test-app.ts';

describe('with a certificate, the listener', () => {
  const app = shareTestApp({ settings: tlsSettings, logged: 'debug' });
  let port: number;
  beforeAll(async () => {
    app.originals.put('avatars/1/ab12', samples.png);
    app.originals.put('attachments/1/2/large.bin', Buffer.alloc(20_000_000));
    port = await app.listen();
  });

  const ask = (path: string, method = 'GET') => app.send(method, path, {}, '', connectSecurely);

  test('responds as the plain one does', async () => {
    const image = await ask('/avatars/1/ab12.webp?size=64');
    expect(image.status).toBe(200);
    expect(image.headers['content-length']).toBe(String(image.body.length));
    expect(image.body.subarray(8, 12).toString()).toBe('WEBP');
    const head = await ask('/avatars/1/ab12.webp?size=64', 'HEAD');
    expect(head.headers['content-length']).toBe(image.headers['content-length']);
    expect(head.body).toHaveLength(0);
    expect(await ask('/avatars/1/nothing.webp')).toMatchObject({ status: 404 });
    expect(await ask('/avatars/1/ab12.webp', 'DELETE')).toMatchObject({
      status: 405,
      headers: { allow: 'GET, HEAD, OPTIONS' },
    });
    expect((await ask('/attachments/1/2/large.bin')).body).toHaveLength(20_000_000);
    expect(app.log.errors).toEqual([]);
  });

  test('knows the address of a client', async () => {
    await ask('/avatars/1/logged.webp');
    const find = () => app.requests.find(({ asset }) => asset.includes('logged'));
    await expect.poll(find).toBeDefined();
    expect(find()?.client).toBe('127.0.0.1');
  });

  test('ends the reading of the origin when a client leaves in mid-body', async () => {
    const socket = await app.begin('/attachments/1/2/large.bin', connectSecurely);
    await once(socket, 'data');
    socket.destroy();
    await expect.poll(() => app.originals.openBodies).toBe(0);
    expect(app.log.errors).toEqual([]);
  });

  /** What a handshake agrees on, or why there is none. */
  const negotiate = (options: object): Promise<unknown> =>
    new Promise((resolve) => {
      const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options });
      socket.once('secureConnect', () => {
        resolve([socket.getProtocol(), socket.alpnProtocol]);
        socket.destroy();
      });
      socket.once('error', (error) => resolve('code' in error ? error.code : error.message));
    });

  test.each([
    ['TLSv1.1', 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION'],
    ['TLSv1.2', ['TLSv1.2', false]],
    ['TLSv1.3', ['TLSv1.3', false]],
  ] as const)('asked for %s speaks %s', async (version, expected) => {
    // OpenSSL 3 offers what is older than 1.2 at its lowest security level alone.
    const ciphers = 'DEFAULT@SECLEVEL=0';
    expect(await negotiate({ minVersion: version, maxVersion: version, ciphers })).toEqual(
      expected,
    );
  });

  test.each([
    [['http/1.1'], ['TLSv1.3', 'http/1.1']],
    [
      ['h2', 'http/1.1'],
      ['TLSv1.3', 'http/1.1'],
    ],
    [['h2'], 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL'],
  ])('offered %j agrees on %j', async (ALPNProtocols, expected) => {
    expect(await negotiate({ ALPNProtocols })).toEqual(expected);
  });
});
