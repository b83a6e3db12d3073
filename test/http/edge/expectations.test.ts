import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseAnswer, sendBytes } from '../../support/http/raw-http.ts';
import { createTestApp, type TestApp } from '../../support/test-app.ts';

let app: TestApp;
let port: number;

beforeEach(async () => {
  app = await createTestApp();
  port = await app.listen();
});
afterEach(() => app.close());

const request = (method: string, ...headers: string[]): string =>
  [`${method} /avatars/0.png HTTP/1.1`, 'Host: a', ...headers, '', ''].join('\r\n');

describe('an expectation (RFC 9110 §10.1.1)', () => {
  it('of a body that is not read is met by the answer itself', async () => {
    const bytes = await sendBytes(
      port,
      request('GET', 'Expect: 100-continue', 'Connection: close'),
    );
    const { status, headers, body } = parseAnswer(bytes);
    expect(status).toBe(200);
    expect(body).toHaveLength(Number(headers['content-length']));
  });

  // Node writes its 100 between the head and the body of an answer that waits for another one.
  it('behind another request does not get into the answer', async () => {
    const bytes = await sendBytes(
      port,
      request('OPTIONS') + request('GET', 'Expect: 100-continue', 'Connection: close'),
    );
    const { status, headers, body } = parseAnswer(bytes.subarray(bytes.indexOf('HTTP/1.1 200')));
    expect(status).toBe(200);
    expect(body).toHaveLength(Number(headers['content-length']));
    expect(body.subarray(1, 4).toString()).toBe('PNG');
  });

  it('that nobody knows changes nothing', async () => {
    const bytes = await sendBytes(
      port,
      request('GET', 'Expect: the-unexpected', 'Connection: close'),
    );
    const { status, headers } = parseAnswer(bytes);
    expect(status).toBe(200);
    expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff' });
  });
});

describe('an upgrade that nobody offers (RFC 9110 §7.8)', () => {
  const upgrade = request('GET', 'Connection: upgrade', 'Upgrade: h2c, websocket');

  // Node's parser stops behind it, and takes no notice of what comes in the same packet.
  it.each([
    ['nothing', ''],
    ['another request', request('GET')],
    ['no HTTP', 'the other protocol\r\n\r\n'],
  ])('is an ordinary request, the last of its connection, before %s', async (_, behind) => {
    const bytes = await sendBytes(port, upgrade + behind);
    const { status, headers, body } = parseAnswer(bytes);
    expect(status).toBe(200);
    expect(headers.connection).toBe('close');
    expect(body).toHaveLength(Number(headers['content-length']));
  });
});
