import { describe, expect, it } from 'vitest';
import { collect, commonHeaders } from '../../support/http/raw-http.ts';
import { readResponses } from '../../support/http/wire-response.ts';
import { shareTestApp } from '../../support/test-app.ts';
import { chunked, get, NO_CHUNKS, unsoundMessages } from './unsound-messages.ts';

const app = shareTestApp();

/** What another server on the way could let through as a second request. */
const SECOND = 'GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n';

/** Sends bytes, and then a last request that ends the connection if nothing has; all responses must be whole. */
async function responsesTo(bytes: string) {
  const socket = await app.connect();
  const { whole } = collect(socket);
  const closed = whole();
  socket.write(bytes, 'latin1');
  // Only a connection that is still understood gets a response to this.
  socket.write('OPTIONS /avatars/0.png HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  const all = readResponses(await closed);
  const responses = all.filter(({ status }) => status !== 204);
  return {
    responses,
    statuses: responses.map(({ status }) => status),
    isClosedBefore: responses.length === all.length,
  };
}

describe('a message that two servers could read in two ways is refused, and its connection ends', () => {
  it.each<readonly [string, string]>([
    ...unsoundMessages,
    // Told only by what follows.
    ['HTTP/0.9', 'GET /avatars/0.png\r\n'],
    // Told only where they come in one packet.
    ['a bare LF before the request line', `\n${get('')}`],
    ['a bare CR before the request line', `\r\r\n${get('')}`],
    ['two spaces after the method', 'GET  /avatars/0.png HTTP/1.1\r\nHost: a\r\n\r\n'],
  ])('%s', async (_, bytes) => {
    const { responses, statuses, isClosedBefore } = await responsesTo(`${bytes}${SECOND}`);
    expect([statuses, isClosedBefore]).toEqual([[400], true]);
    for (const { headers, body } of responses) {
      expect(headers).toMatchObject({
        ...commonHeaders,
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'no-store',
        connection: 'close',
      });
      const message = expect.any(String);
      expect(JSON.parse(`${body}`)).toEqual({ code: 'INVALID_FORM_BODY', message, errors: [] });
    }
    expect(app.log.errors).toEqual([]);
  });
});

describe('a message that can be read in one way is served, and so is the next', () => {
  it.each([
    ['a length', get('Content-Length: 5\r\n', 'xxxxx')],
    ['a length with zeros', get('Content-Length: 05\r\n', 'xxxxx')],
    ['a length between spaces', get('Content-Length:  5 \r\n', 'xxxxx')],
    ['a body that looks like a request', get(`Content-Length: ${SECOND.length}\r\n`, SECOND)],
    ['a text that is no JSON', get('Content-Type: application/json\r\nContent-Length: 1\r\n', '{')],
    ['chunks', chunked(`5\r\nxxxxx\r\n${NO_CHUNKS}`)],
    [
      'chunks in capitals',
      get('TRANSFER-ENCODING:\tCHUNKED\r\n', `A\r\nxxxxxxxxxx\r\n${NO_CHUNKS}`),
    ],
    ['an extension of a chunk', chunked(`1;a=b;c="d"\r\nx\r\n${NO_CHUNKS}`)],
    ['trailers', chunked('0\r\nX: y\r\n\r\n')],
    ['a length with an underscore', get('Content_Length: 5\r\n')],
    ['an empty host', 'GET /avatars/0.png HTTP/1.1\r\nHost:\r\n\r\n'],
    ['a host of IPv6', 'GET /avatars/0.png HTTP/1.1\r\nHost: [::1]:3000\r\n\r\n'],
    ['another host in the target', 'GET http://b/avatars/0.png HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['empty lines before it', `\r\n\r\n${get('')}`],
    ['an expectation that means nothing', get('Expect: the-unexpected\r\n')],
  ])('%s', async (_, bytes) => {
    const { statuses, isClosedBefore } = await responsesTo(`${bytes}${SECOND}`);
    expect([statuses, isClosedBefore]).toEqual([[200, 404], false]);
  });
});

describe('after a request', () => {
  it.each([
    ['two spaces after the second method', `${get('')}${get('').replace(' ', '  ')}`, [200, 400]],
    ['a body that is none', get('Content-Length: 5\r\n', 'xxxxxgarbage\r\n\r\n'), [200, 400]],
    [
      'a POST with a body of no length',
      'POST /avatars/0.png HTTP/1.1\r\nHost: a\r\n\r\nxx x',
      [405, 400],
    ],
    // The body's fault is found when the response is out; there is no second one to the same request.
    ['a chunk without an end', chunked(`1\r\nx${NO_CHUNKS}`), [200]],
    ['Connection: close, more is nothing to us', get('Connection: close\r\n'), [200]],
    [
      'an upgrade to h2c, likewise',
      get(
        'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n',
      ),
      [200],
    ],
    [
      'an upgrade to a websocket and its first words, likewise',
      get('Connection: Upgrade\r\nUpgrade: websocket\r\n', 'the other protocol\r\n\r\n'),
      [200],
    ],
    [
      'an expectation of 100, its body is not known to come',
      get('Expect: 100-continue\r\nContent-Length: 5\r\n', 'xxxxx'),
      [200],
    ],
    ['a CONNECT', 'CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n', [405]],
  ])('%s', async (_, bytes, statuses) => {
    expect(await responsesTo(`${bytes}${SECOND}`)).toMatchObject({
      statuses,
      isClosedBefore: true,
    });
    expect(app.log.errors).toEqual([]);
  });

  it('a CONNECT does not get its refusal into the middle of the response', async () => {
    const { statuses } = await responsesTo(`${get('')}CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n`);
    expect(statuses).toEqual([200]);
  });

  // Node would write its 100 between the head and the body of a response that waits for another one.
  it('a second one with an expectation of 100 has its response whole (RFC 9110 §10.1.1)', async () => {
    const { statuses } = await responsesTo(get('') + get('Expect: 100-continue\r\n'));
    expect(statuses).toEqual([200, 200]);
  });
});
