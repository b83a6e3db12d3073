import { expect, test } from 'vitest';
import { isRebound } from '../../../src/http/explorer/handler.ts';
import { eitherListener } from '../../support/http/tls-files.ts';
import { useTestApp } from '../../support/test-app.ts';

/** A socket without an address counts as loopback. */
const ownAddresses = ['127.0.0.1', '127.8.9.1', '::1', '::ffff:127.0.0.1', undefined];
const networks = ['192.0.2.7', '10.0.0.1', '2001:db8::1', '::ffff:192.0.2.7', '::12'];
const trusted = [
  ...['localhost', 'localhost:3000', 'LocalHost:3000', 'pictures.localhost:3000', 'a.b.localhost'],
  ...['127.0.0.1:3000', '192.0.2.7', '[::1]:3000', '[::1]'],
];
const suspicious = [
  ...['evil.example:3000', 'evil.example', 'localhost.evil.example:3000', 'notlocalhost:3000'],
  ...['127.0.0.1.evil.example:3000', '127.0.0.1@evil.example', '[evil.example]:3000'],
  ...['.localhost', '', ':3000', undefined],
];

test.each([
  ...trusted.map((host) => [host, ownAddresses, false] as const),
  ...suspicious.map((host) => [host, ownAddresses, true] as const),
  ['media.example', networks, false] as const,
  [undefined, networks, false] as const,
])(
  'detects DNS rebinding by the host %s at the addresses %j: %s',
  (host, addresses, isRebinding) => {
    for (const localAddress of addresses) {
      const headers = host === undefined ? {} : { host };
      expect(isRebound({ headers, socket: { localAddress } })).toBe(isRebinding);
    }
  },
);

test.each(eitherListener)(
  'a page whose name resolves to this machine finds no explorer: %s',
  async (_, settings) => {
    const { get, listen, send } = await useTestApp({ settings: { EXPLORER: 'on', ...settings } });
    const port = await listen();
    const off = await get('/nothing');
    const request = (method: string, path: string, Host: string) => send(method, path, { Host });
    const files = ['', 'explorer/page.css', 'explorer/originals.json', 'explorer/facts.json'];
    for (const file of files) {
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        const { status, headers, body } = await request(method, `/${file}`, `evil.example:${port}`);
        const seen = [status, headers['cache-control'], body.toString()];
        expect(seen, `${method} ${file}`).toEqual([404, off.headers['cache-control'], off.body]);
      }
      const { status, headers } = await request('GET', `/${file}`, `darkroom.localhost:${port}`);
      expect(status, file).toBe(200);
      expect(headers).not.toHaveProperty('access-control-allow-origin');
    }
    expect((await request('GET', '/avatars/0.png', 'evil.example')).status).toBe(200); // for everyone
  },
);
