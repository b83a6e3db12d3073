import type { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { collect, parseResponse, sendBytes } from '../../support/http/raw-http.ts';
import { readResponses } from '../../support/http/wire-response.ts';
import { shareTestApp } from '../../support/test-app.ts';
import { chunked, get, line, NO_CHUNKS } from '../../surface/malformed-messages.ts';

const app = shareTestApp();

/** Second request, which another server could read as part of the first one. */
const SECOND = 'GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n';
const BREW = line('BREW /avatars/0.png HTTP/1.1');
const EXPECT = 'Expect: 100-continue\r\n';
const EMPTY_POST = line('POST /avatars/0.png HTTP/1.1\r\nContent-Length: 2');
const TEN = 'A\r\nxxxxxxxxxx\r\n';

/** Last request: a 204 shows that the server has parsed all earlier bytes correctly. */
const LAST = 'OPTIONS /avatars/0.png HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

// test/surface checks ambiguous requests. These rows need one packet, or are detected by the request that follows.
it.each([
  ['400', 'HTTP/0.9', 'GET /avatars/0.png\r\n'],
  ['200 400', 'an invalid body', get('Content-Length: 5\r\n', 'xxxxxgarbage\r\n\r\n')],
  ['405 400', 'a POST with a body but no length', `${line('POST /avatars/0.png HTTP/1.1')}xx x`],
  // The error in the body is found after the response, and a request gets only one response.
  ['200', 'a chunk without an end', chunked(`1\r\nx${NO_CHUNKS}`)],

  // The rest is ignored.
  ['200', 'Connection: close', get('Connection: close\r\n')],
  ['200', 'an upgrade to h2c', get('Connection: Upgrade\r\nUpgrade: h2c\r\n')],
  ['200', 'an upgrade with further bytes', get('Upgrade: websocket\r\n', 'other words\r\n\r\n')],
  ['200', 'a body after an ignored expectation', get(`${EXPECT}Content-Length: 5\r\n`, 'xxxxx')],
  ['200', 'no host in HTTP/1.0', 'GET /avatars/0.png HTTP/1.0\r\n\r\n'],
  ['405', 'a CONNECT', line('CONNECT a:80 HTTP/1.1')],
  // The rejection of the CONNECT must not interrupt the earlier response.
  ['200', 'a request and a CONNECT', get('') + line('CONNECT a:80 HTTP/1.1')],
  ['405', 'an unknown method', BREW],
  ['200 200 405', 'the same, after others', get('') + get('') + BREW],
  ['405', 'the same, after an empty line', `\r\n${BREW}`],
  ['405 405', 'the same, after a body of an empty line', `${EMPTY_POST}\r\n${BREW}`],
  ['405', 'a method of special characters', line("!#$%&'*+.^_`|~-9 /avatars/0.png HTTP/1.1")],
  ['404', 'an unknown method and path', line('BREW /nothing HTTP/1.1')],

  ['200 404 204', 'a length with zeros', get('Content-Length: 05\r\n', 'xxxxx')],
  ['200 404 204', 'a length between spaces', get('Content-Length:  5 \r\n', 'xxxxx')],
  ['200 404 204', 'chunks in capitals', get('TRANSFER-ENCODING:\tCHUNKED\r\n', TEN + NO_CHUNKS)],
  ['200 404 204', 'an extension of a chunk', chunked(`1;a=b;c="d"\r\nx\r\n${NO_CHUNKS}`)],
  ['200 404 204', 'trailers', chunked('0\r\nX: y\r\n\r\n')],
  ['200 404 204', 'a length with an underscore', get('Content_Length: 5\r\n')],
  ['200 404 204', 'an empty host', 'GET /avatars/0.png HTTP/1.1\r\nHost:\r\n\r\n'],
  ['200 404 204', 'another host in the target', line('GET http://b/avatars/0.png HTTP/1.1')],
  ['200 404 204', 'leading empty lines', `\r\n\r\n${get('')}`],
  ['200 404 204', 'an unknown expectation', get('Expect: the-unexpected\r\n')],
  // Node would write its 100 between the head and the body of the earlier response.
  ['200 200', 'a second request with an expectation', get('') + get(EXPECT)],
] as const)('a connection responds with %s to %s', async (expected, _, bytes) => {
  const responses = readResponses(await sendBytes(await app.listen(), bytes + SECOND + LAST));
  expect(responses.map(({ status }) => status).join(' ')).toBe(expected);
  const { headers } = responses.at(-1) ?? expect.fail();
  if (/4\d\d$/.test(expected)) expect(headers.connection).toBe('close');
  expect(headers.date).toMatch(/^\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/);
  if (expected.endsWith('405')) expect(headers.allow).toBe('GET, HEAD, OPTIONS');
  expect(app.log.errors).toEqual([]);
});

it('parses a head in two packets, with bytes after it in the second, like a single packet', async () => {
  const socket = await app.connect();
  const { bytes, allBytes } = collect(socket);
  const [first, last] = [get(''), get('Connection: close\r\n').replace('Host: ', 'Host:  ')];
  socket.write(first + first.slice(0, 20));
  await expect.poll(() => bytes().length).toBeGreaterThan(0);
  socket.write(first.slice(20) + last);
  expect(readResponses(await allBytes()).map(({ status }) => status)).toEqual([200, 200, 200]);
});

it('never sends a rejection of invalid bytes within a response', async () => {
  const size = 8 * 1024 * 1024; // larger than the buffers of a connection
  app.originals.put('attachments/1/2/zeros', Buffer.alloc(size));
  let received = (): number => 0;
  app.server.server.on('connection', (serverSocket: Socket) => {
    received = () => serverSocket.bytesRead;
  });
  const socket = (await app.begin('/attachments/1/2/zeros')).pause();
  await expect.poll(() => socket.bytesRead).toBeGreaterThan(0);
  socket.write('garbage\r\n\r\n');
  await expect.poll(received).toBe(socket.bytesWritten);
  const { allBytes } = collect(socket.resume());
  const { status, body } = parseResponse(await allBytes());
  expect(status).toBe(200);
  expect(body.subarray(0, size).equals(Buffer.alloc(size))).toBe(true);
  expect(parseResponse(body.subarray(size)).status).toBe(400);
  expect(app.log.errors).toEqual([]);
});
