import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { collect, parseResponse, sendBytes } from '../../support/http/raw-http.ts';
import { eitherListener, tlsSettings } from '../../support/http/tls-files.ts';
import { readResponses } from '../../support/http/wire-response.ts';
import { findErrorDeviations } from '../../support/openapi/openapi-reader.ts';
import { trickle } from '../../support/sites/hostile-server.ts';
import { type TestApp, type TestAppOptions, useTestApp } from '../../support/test-app.ts';

/** Short enough for tests, and different enough to be distinguished. */
const short = { headTimeoutMs: 200, requestTimeoutMs: 600, sweepIntervalMs: 20 };
/** Time after its last byte until the server ends a connection that the client does not close. */
const LINGER_MS = 2_000;
const MEGABYTE = 1_000_000;

let app: TestApp;

async function start(options: TestAppOptions = {}): Promise<void> {
  app = await useTestApp({ clientLimits: short, ...options });
}

const sweeps = () => sleep(60);

const LINE = 'GET /avatars/0.png HTTP/1.1\r\n';
const HOST = 'Host: a\r\n';
const CLOSE = 'Connection: close\r\n';
const get = (fields: string): string => `${LINE}${HOST}${fields}\r\n`;
const post = (lengthBytes: number): string =>
  `POST /avatars/0.png HTTP/1.1\r\n${HOST}Content-Length: ${lengthBytes}\r\n\r\n`;

const BODY = 'x'.repeat(500_000);
/** Bytes that a client sends at once and then byte by byte, the responses, and the minimum time until the server closes. */
const rows: readonly [name: string, at: string, after: string, statuses: number[], ms: number][] = [
  ['nothing', '', '', [408], 150],
  ['half a request line', 'GET /avatars/0', '', [408], 150],
  ['a request line byte by byte', '', `GET /${'x'.repeat(999)}`, [408], 150],
  ['one field after the other', LINE + HOST, 'X: y\r\n', [408], 150],
  ['half of a second request', get('') + LINE, '', [200, 408], 150],
  [
    'a body that never ends, after the response',
    get('Content-Length: 1000000\r\n'),
    'x',
    [200],
    500,
  ],
  ['a body that is discarded', post(500_000) + BODY + get(CLOSE), '', [405, 200], 0],
];

describe.each(eitherListener)('%s, a client', (_, settings) => {
  it.each(rows)('that sends %s', async (...[, atOnce, after, statuses, minMs]) => {
    await start({ settings });
    await app.listen();
    const startMs = performance.now();
    const socket = await app.connect();
    const closed = collect(socket).allBytes();
    socket.write(atOnce);
    trickle(socket, after.repeat(1_000), 5);
    const responses = readResponses(await closed);
    expect(performance.now() - startMs).toBeGreaterThan(minMs);
    expect(responses.map(({ status }) => status)).toEqual(statuses);
    for (const response of responses.filter(({ status }) => status === 408)) {
      expect(findErrorDeviations('GET', response)).toEqual([]);
      expect(response.headers).toMatchObject({ connection: 'close', 'cache-control': 'no-store' });
    }
    expect(app.log.errors).toEqual([]);
  });

  it('that sends an endless body is disconnected', async () => {
    await start({ settings });
    let readBytes = (): number => 0;
    app.server.server.once('connection', (transport: Socket) => {
      readBytes = () => transport.bytesRead;
    });
    const socket = await app.connect();
    const closed = collect(socket).allBytes();
    socket.write(post(1e10));
    let megabytes = 0;
    const send = (): void => {
      megabytes += 1;
      if (megabytes <= 100 && socket.writable) socket.write(Buffer.alloc(MEGABYTE), send);
    };
    send();
    await expect.poll(() => socket.bytesRead).toBeGreaterThan(0);
    app.clock.advance(2 * LINGER_MS);
    expect(readResponses(await closed).map(({ status }) => status)).toEqual([405]);
    expect(readBytes()).toBeGreaterThan(MEGABYTE);
    expect(readBytes()).toBeLessThan(10 * MEGABYTE); // TLS buffers some more
  });

  it('that still sends after the last response is not reset, which could lose the response', async () => {
    await start({ settings });
    const socket = await app.connect({ allowHalfOpen: true });
    const { bytes } = collect(socket);
    socket.write(`${get(`${CLOSE}Content-Length: 20\r\n`)}0123456789`);
    await once(socket, 'end');
    // The server reads later bytes, and closes when the client does. An error would be thrown here.
    const closed = once(socket, 'close');
    socket.write('01234');
    await sweeps();
    socket.end('56789');
    await closed;
    expect(parseResponse(bytes()).status).toBe(200);
  });

  it('that is idle stays connected longer than the idle timeout of the proxy in front', async () => {
    await start({ settings });
    const socket = await app.begin('/avatars/0.png');
    await once(socket, 'data');
    for (let passedMs = 0; passedMs < 70_000; passedMs += 10_000) {
      app.clock.advance(10_000);
      await sweeps();
    }
    expect(socket.closed).toBe(false);
    app.clock.advance(3_000); // 72 s; deploy/nginx/darkroom.conf has 60
    await expect.poll(() => socket.closed).toBe(true);
  });
});

describe('a client that has received its final response', () => {
  it.each([
    ['a request', get(CLOSE)],
    ['no HTTP', 'garbage\r\n\r\n'],
  ])('to %s is disconnected at its deadline, even if it continues to send', async (_, bytes) => {
    await start({ clientLimits: { ...short, headTimeoutMs: 60_000, requestTimeoutMs: 60_000 } });
    const socket = await app.connect({ allowHalfOpen: true });
    const ended = once(socket.resume(), 'end');
    socket.write(bytes);
    await ended;
    trickle(socket, 'x'.repeat(1_000), 5);
    app.clock.advance(0.9 * LINGER_MS);
    await sweeps();
    expect(socket.closed).toBe(false);
    app.clock.advance(0.2 * LINGER_MS);
    await expect.poll(() => socket.closed).toBe(true);
  });

  it('gets no response to further requests', async () => {
    await start();
    const socket = await app.begin('/avatars/0.png', { allowHalfOpen: true });
    const ended = once(socket, 'end');
    await once(socket, 'data');
    app.clock.advance(73_000);
    await ended;
    expect(await app.countConnections()).toBe(1);
    socket.write('GET /attachments/1/2/a HTTP/1.1\r\nHost: a\r\n\r\n');
    await expect.poll(app.countConnections).toBe(0);
    expect(app.originals.reads.size).toBe(0);
  });
});

it.each([
  ['nothing', ''],
  ['half a ClientHello', '\u0016\u0003\u0001\u0002'],
  ['HTTP without TLS', get('')],
])('a handshake of %s is cut off', async (_, bytes) => {
  await start({ settings: tlsSettings, clientLimits: { ...short, handshakeTimeoutMs: 200 } });
  await sendBytes(await app.listen(), bytes);
  expect(app.log.errors).toEqual([]);
});

describe('a head that is too large', () => {
  const fields = (count: number, bytes: number): Record<string, string> =>
    Object.fromEntries(Array.from(Array(count).keys(), (at) => [`x-${at}`, 'x'.repeat(bytes)]));

  it.each([
    ['a long URL', `/icons/1/ab.png?v=${'x'.repeat(MEGABYTE)}`, {}, 431],
    ['a long field', '/avatars/0.png', fields(1, MEGABYTE), 431],
    ['very many fields', '/avatars/0.png', fields(50_000, 1), 431],
    // In addition to Host and Connection.
    ['101 fields', '/avatars/0.png', fields(99, 1), 431],
    ['no more than 100', '/avatars/0.png', fields(98, 100), 200],
  ])('is rejected while the client still sends: %s', async (_, path, headers, status) => {
    await start();
    expect((await app.send('GET', path, headers)).status).toBe(status);
  });
});
