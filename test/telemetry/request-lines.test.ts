import { describe, expect, it } from 'vitest';
import { type RequestLine, samples, shareTestApp, useTestApp } from '../support/test-app.ts';

const ICON = '/icons/1/ab.webp?size=16';
const TARGETS = ['/robots.txt', '/avatars/0.png', '/avatars/0.png', ICON, ICON];
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/** Sends requests sequentially; returns their log lines and response ids. */
async function linesOf(
  app: Awaited<ReturnType<typeof useTestApp>>,
  headers: Record<string, string>,
) {
  app.originals.put('icons/1/ab', samples.jpeg);
  const seen: (RequestLine & { readonly returned: string | undefined })[] = [];
  for (const target of TARGETS) {
    const response = await app.send('GET', target, headers);
    await expect.poll(() => app.requests).toHaveLength(1);
    const [line = expect.fail()] = app.requests.splice(0);
    seen.push({ ...line, returned: response.headers['x-request-id'] });
  }
  return seen;
}

describe('the id of a request', () => {
  const app = shareTestApp({ logged: 'debug' });

  it.each(['7f3a', 'Root=1-67891233-abcdef012345678912345678', 'a+b/c==:1~x_y.z', 'x'.repeat(128)])(
    'is the id of its sender: %s',
    async (id) => {
      for (const line of await linesOf(app, { 'X-Request-Id': id })) {
        expect(line).toMatchObject({ id, returned: id });
      }
    },
  );

  it.each(['', 'x'.repeat(129), 'a b', '<b>', 'a\u00e9', 'a,b', 'a\r\nX-Request-Id: b'])(
    'is created if the id of the sender is invalid: %j',
    async (id) => {
      const lines = await linesOf(app, { 'X-Request-Id': id });
      for (const { id, returned } of lines)
        expect([returned, returned]).toEqual([id, expect.stringMatching(UUID)]);
      expect(new Set(lines.map(({ id }) => id)).size).toBe(lines.length);
    },
  );
});

const garbage = `<script>${'x'.repeat(9_000)}</script>`;

it.each([
  ['127.0.0.1', '203.0.113.9', '203.0.113.9'],
  ['true', '203.0.113.9', '203.0.113.9'],
  ['10.0.0.0/8', '203.0.113.9', '127.0.0.1'],
  ['false', '203.0.113.9', '127.0.0.1'],
  // Invalid addresses do not identify a client.
  ['true', garbage, '127.0.0.1'],
  ['true', `${garbage}, 203.0.113.9, 10.0.0.1`, '203.0.113.9'],
  ['true', '\x9b31m, 2001:db8::1', '2001:db8::1'],
  ['true', `fe80::1%${'x'.repeat(9_000)}`, '127.0.0.1'],
  ['true', '203.0.113.9:443', '203.0.113.9'],
  ['true', '[2001:db8::1]:443, 10.0.0.1', '2001:db8::1'],
  ['true', '203.0.113.9:443:443', '127.0.0.1'],
  ['127.0.0.1', garbage, '127.0.0.1'],
  ['127.0.0.1, 10.0.0.1', `203.0.113.9, ${garbage}, 10.0.0.1`, '10.0.0.1'],
  ['127.0.0.1, 10.0.0.0/8', '198.51.100.1, 203.0.113.1, 10.1.1.1', '203.0.113.1'],
])('with TRUST_PROXY=%s logs the address of the client (%#)', async (...row) => {
  const [TRUST_PROXY, from, client] = row;
  const app = await useTestApp({ logged: 'debug', settings: { TRUST_PROXY } });
  const lines = await linesOf(app, { 'X-Forwarded-For': from });
  expect(lines.map((line) => line.client)).toEqual(TARGETS.map(() => client));
});
