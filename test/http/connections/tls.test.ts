import { once } from 'node:events';
import { connect } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { tlsSettings } from '../../support/http/tls-files.ts';
import { shareTestApp } from '../../support/test-app.ts';

describe('the listener with a certificate', () => {
  const app = shareTestApp({ settings: tlsSettings, logged: 'debug' });

  // slow-readers.test.ts checks large bodies.
  test('reports the address of the client', async () => {
    await app.send('GET', '/nothing');
    await expect.poll(() => app.requests.at(-1)?.client).toBe('127.0.0.1');
  });

  // OpenSSL 3 offers versions before 1.2 only at its lowest security level.
  const only = (version: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3') => {
    return { minVersion: version, maxVersion: version, ciphers: 'DEFAULT@SECLEVEL=0' };
  };

  test.each([
    [only('TLSv1.1'), 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION'],
    [only('TLSv1.2'), 'TLSv1.2 false'],
    [only('TLSv1.3'), 'TLSv1.3 false'],
    [{ ALPNProtocols: ['http/1.1'] }, 'TLSv1.3 http/1.1'],
    [{ ALPNProtocols: ['h2', 'http/1.1'] }, 'TLSv1.3 http/1.1'],
    [{ ALPNProtocols: ['h2'] }, 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL'],
  ])('with the offer %j negotiates %s', async (offer, negotiated) => {
    const port = await app.listen();
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...offer });
    const outcome = await once(socket, 'secureConnect').then(
      () => `${socket.getProtocol()} ${socket.alpnProtocol}`,
      (error) => error.code,
    );
    socket.destroy();
    expect(outcome).toBe(negotiated);
  });
});
