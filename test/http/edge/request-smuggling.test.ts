import { describe, expect, it } from 'vitest';
import { collect } from '../../support/http/raw-http.ts';
import { readResponses } from '../../support/http/wire-response.ts';
import { shareTestApp } from '../../support/test-app.ts';

const app = shareTestApp();

/** What another server on the way could let through as a second request. */
const SECOND = 'GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n';

/**
 * Sends bytes, and then a last request that ends the connection if nothing has.
 *
 * @returns the statuses of all responses, each of which must be whole
 */
async function responsesTo(
  bytes: string,
): Promise<{ statuses: number[]; isClosedBefore: boolean }> {
  const socket = await app.connect();
  const { whole } = collect(socket);
  const closed = whole();
  socket.write(bytes, 'latin1');
  // Only a connection that is still understood gets a response to this.
  socket.write('OPTIONS /avatars/0.png HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  const statuses = readResponses(await closed).map(({ status }) => status);
  return {
    statuses: statuses.filter((status) => status !== 204),
    isClosedBefore: !statuses.includes(204),
  };
}

const get = (fields: string, rest = '') =>
  `GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n${fields}\r\n${rest}`;
const chunked = (rest: string) => get('Transfer-Encoding: chunked\r\n', rest);
const NO_CHUNKS = '0\r\n\r\n';

describe('a message that two servers could read in two ways is refused, and its connection ends', () => {
  it.each([
    ['a length and chunks', get('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', NO_CHUNKS)],
    ['chunks and a length', get('Transfer-Encoding: chunked\r\nContent-Length: 5\r\n', NO_CHUNKS)],
    ['two lengths', get('Content-Length: 5\r\nContent-Length: 6\r\n', 'xxxxx')],
    ['the same length twice', get('Content-Length: 5\r\nContent-Length: 5\r\n', 'xxxxx')],
    ['a list of lengths', get('Content-Length: 5, 5\r\n', 'xxxxx')],
    ['a negative length', get('Content-Length: -5\r\n')],
    ['a length with a plus', get('Content-Length: +5\r\n', 'xxxxx')],
    ['a hexadecimal length', get('Content-Length: 0x5\r\n', 'xxxxx')],
    ['a length with letters', get('Content-Length: 5a\r\n', 'xxxxx')],
    ['two numbers for a length', get('Content-Length: 5 5\r\n', 'xxxxx')],
    ['no number for a length', get('Content-Length:\r\n')],
    ['a length beyond 2^64', get('Content-Length: 18446744073709551621\r\n', 'xxxxx')],
    ['a length on a folded line', get('Content-Length:\r\n 5\r\n', 'xxxxx')],
    ['a length before a space and a colon', get('Content-Length : 5\r\n', 'xxxxx')],
    ['a length behind a bare LF', get('X: y\nContent-Length: 5\r\n', 'xxxxx')],
    ['a length behind a bare CR', get('X: y\rContent-Length: 5\r\n', 'xxxxx')],
    ['chunked, identity', get('Transfer-Encoding: chunked, identity\r\n', NO_CHUNKS)],
    ['identity', get('Transfer-Encoding: identity\r\n', NO_CHUNKS)],
    ['xchunked', get('Transfer-Encoding: xchunked\r\n', NO_CHUNKS)],
    ['chunked twice', get('Transfer-Encoding: chunked, chunked\r\n', NO_CHUNKS)],
    ['a coding that is not undone', get('Transfer-Encoding: gzip, chunked\r\n', NO_CHUNKS)],
    ['a coding with a parameter', get('Transfer-Encoding: chunked;a=b\r\n', NO_CHUNKS)],
    ['a coding with a control character', get('Transfer-Encoding: \x0bchunked\r\n', NO_CHUNKS)],
    ['no coding', get('Transfer-Encoding:\r\n', NO_CHUNKS)],
    [
      'two codings',
      get('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n', NO_CHUNKS),
    ],
    ['a coding on a folded line', get('Transfer-Encoding:\r\n chunked\r\n', NO_CHUNKS)],
    ['a coding before a tab and a colon', get('Transfer-Encoding\t: chunked\r\n', NO_CHUNKS)],
    [
      'chunks in HTTP/1.0',
      `GET /avatars/0.png HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n${NO_CHUNKS}`,
    ],
    ['a chunk of -1', chunked(`-1\r\nx\r\n${NO_CHUNKS}`)],
    ['a chunk of +1', chunked(`+1\r\nx\r\n${NO_CHUNKS}`)],
    ['a chunk of 0x1', chunked(`0x1\r\nx\r\n${NO_CHUNKS}`)],
    ['a chunk beyond 2^64', chunked(`10000000000000001\r\nx\r\n${NO_CHUNKS}`)],
    ['a chunk whose length ends with LF', chunked(`1\nx\r\n${NO_CHUNKS}`)],
    ['an extension of a chunk with LF', chunked(`1;a\nx\r\n${NO_CHUNKS}`)],
    ['an extension of a chunk with a quoted line end', chunked(`1;a="\r\n"\r\nx\r\n${NO_CHUNKS}`)],
    ['a length among the trailers', chunked('0\r\nContent-Length: 5\r\n\r\n')],
    ['chunks that end with LF', chunked('0\r\n\n')],
    ['a bare LF before the request line', `\n${get('')}`],
    ['a bare CR before the request line', `\r\r\n${get('')}`],
    ['two spaces after the method', 'GET  /avatars/0.png HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['two hosts', get('Host: b\r\n')],
    ['two equal hosts', get('host: a\r\n')],
    ['a list of hosts', 'GET /avatars/0.png HTTP/1.1\r\nHost: a, b\r\n\r\n'],
    ['a host with a space', 'GET /avatars/0.png HTTP/1.1\r\nHost: a b\r\n\r\n'],
    ['a host with a path', 'GET /avatars/0.png HTTP/1.1\r\nHost: a/b@c\r\n\r\n'],
    ['no host', 'GET /avatars/0.png HTTP/1.1\r\n\r\n'],
    ['a folded line', get('X: a\r\n b\r\n')],
    ['a folded first line', 'GET /avatars/0.png HTTP/1.1\r\n Host: a\r\n\r\n'],
    ['lines that end with LF', 'GET /avatars/0.png HTTP/1.1\nHost: a\n\n'],
    ['a head that ends with LF', 'GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n\n'],
    ['a space before a colon', get('X : y\r\n')],
    ['NUL in a value', get('X: a\0b\r\n')],
    ['NUL in a name', get('X\0: b\r\n')],
    ['no name', get(': b\r\n')],
    ['a space before the method', ` ${get('')}`],
    ['a tab in the request line', 'GET\t/avatars/0.png\tHTTP/1.1\r\nHost: a\r\n\r\n'],
    ['HTTP/0.9', 'GET /avatars/0.png\r\n'],
    ['HTTP/1.2', 'GET /avatars/0.png HTTP/1.2\r\nHost: a\r\n\r\n'],
    ['HTTP/2.0 in words', 'GET /avatars/0.png HTTP/2.0\r\nHost: a\r\n\r\n'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['authority form', 'GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n'],
  ])('%s', async (_, bytes) => {
    expect(await responsesTo(`${bytes}${SECOND}`)).toEqual({
      statuses: [400],
      isClosedBefore: true,
    });
    expect(app.log.errors).toEqual([]);
  });
});

describe('a message that can be read in one way is served, and so is the next', () => {
  it.each([
    ['a length', get('Content-Length: 5\r\n', 'xxxxx')],
    ['a length with zeros', get('Content-Length: 05\r\n', 'xxxxx')],
    ['a length between spaces', get('Content-Length:  5 \r\n', 'xxxxx')],
    ['a body that looks like a request', get(`Content-Length: ${SECOND.length}\r\n`, SECOND)],
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
    expect(await responsesTo(`${bytes}${SECOND}`)).toEqual({
      statuses: [200, 404],
      isClosedBefore: false,
    });
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
    expect(await responsesTo(`${bytes}${SECOND}`)).toEqual({ statuses, isClosedBefore: true });
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
