import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { type ClientLimits, clientLimits } from '../../../src/http/edge/client-limits.ts';
import {
  collect,
  connectSecurely,
  connectTo,
  parseAnswer,
  watchClose,
} from '../../support/http/raw-http.ts';
import { tlsSettings } from '../../support/http/tls-files.ts';
import { type TestApp, type TestAppOptions, useTestApp } from '../../support/test-app.ts';

/** Short enough to be waited for, and far enough apart not to be confused. */
const short: Partial<ClientLimits> = {
  handshakeTimeoutMs: 200,
  headTimeoutMs: 200,
  requestTimeoutMs: 600,
  sweepIntervalMs: 20,
};

let app: TestApp;

async function start(options: TestAppOptions = {}): Promise<void> {
  app = await useTestApp({ clientLimits: short, ...options });
}

/** The clients of either listener. */
const listeners = [
  ['plain', {}, connectTo],
  ['with TLS', tlsSettings, connectSecurely],
] as const;

/** Clients that can still send when the server has ended. */
const openHalf = {
  plain: (port: number) => connectTo(port, true),
  'with TLS': (port: number) => connectSecurely(port, true),
};

/** All that comes until the server hangs up, and how long that took. */
async function untilClosed(socket: Socket): Promise<{ bytes: Buffer; tookMs: number }> {
  const startMs = performance.now();
  return { bytes: await collect(socket).whole(), tookMs: performance.now() - startMs };
}

/** Sends a byte at a time, until the server hangs up. */
function trickle(socket: Socket, bytes: string): void {
  let sent = 0;
  const timer = setInterval(() => {
    socket.write(bytes.charAt(sent % bytes.length));
    sent += 1;
  }, 5);
  socket.once('close', () => clearInterval(timer));
}

describe.each(listeners)('%s, a request that does not come to its end', (_, settings, open) => {
  it.each([
    ['not a word', (): void => undefined],
    ['half a request line', (socket: Socket) => void socket.write('GET /avatars/0')],
    ['a request line byte by byte', (socket: Socket) => trickle(socket, `GET /${'x'.repeat(999)}`)],
    [
      'one field after the other',
      (socket: Socket): void => {
        socket.write('GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n');
        trickle(socket, 'X: y\r\n');
      },
    ],
  ])('is a 408, and its connection closed: %s', async (_, send) => {
    await start({ settings });
    const socket = await app.connect(open);
    send(socket);
    const { bytes, tookMs } = await untilClosed(socket);
    const response = parseAnswer(bytes);
    expect(response.status).toBe(408);
    expect(response.headers).toMatchObject({
      connection: 'close',
      'cache-control': 'no-store',
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(response.body.length),
      'access-control-allow-origin': '*',
    });
    expect(JSON.parse(response.body.toString())).toEqual({
      code: 'INVALID_FORM_BODY',
      message: 'The request has not come in time.',
      errors: [],
    });
    expect(tookMs).toBeGreaterThan(150);
    expect(tookMs).toBeLessThan(2_000);
    expect(app.log.errors).toEqual([]);
  });

  it('is a 408 also if it is the second one', async () => {
    await start({ settings });
    const socket = await app.begin('/avatars/0.png', open);
    await once(socket, 'data');
    socket.write('GET /avatars/0.png HTTP/1.1\r\n');
    const { bytes } = await untilClosed(socket);
    expect(bytes.toString('latin1')).toMatch(/HTTP\/1\.1 408 /);
  });

  it('has one response if only its body does not: that is not waited for', async () => {
    await start({ settings });
    const socket = await app.connect(open);
    socket.write('GET /avatars/0.png HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n');
    trickle(socket, 'x');
    const { bytes, tookMs } = await untilClosed(socket);
    expect(bytes.toString('latin1').match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 200']);
    expect(tookMs).toBeGreaterThan(500);
    expect(tookMs).toBeLessThan(2_500);
  });
});

describe.each(listeners)('%s, a body that is not wanted', (_, settings, open) => {
  it('is not read for ever', async () => {
    await start({ settings });
    let readBytes = (): number => 0;
    app.server.server.once('connection', (transport: Socket) => {
      readBytes = () => transport.bytesRead;
    });
    const socket = await app.connect(open);
    const closed = untilClosed(socket);
    socket.write('POST /avatars/0.png HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000000\r\n\r\n');
    const megabyte = Buffer.alloc(1_000_000);
    let sentBytes = 0;
    const send = (): void => {
      if (sentBytes >= 100_000_000 || !socket.writable) return;
      sentBytes += megabyte.length;
      socket.write(megabyte, () => send());
    };
    send();
    await expect.poll(() => socket.bytesRead).toBeGreaterThan(0);
    app.clock.advance(2 * clientLimits.lingerTimeoutMs);
    const { bytes } = await closed;
    expect(bytes.toString('latin1').match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 405']);
    expect(readBytes()).toBeGreaterThan(clientLimits.maxBodyBytes);
    expect(readBytes()).toBeLessThan(10 * clientLimits.maxBodyBytes); // TLS reads some ahead
  });

  it('is read over if it is short', async () => {
    await start({ settings });
    const socket = await app.connect(open);
    const closed = untilClosed(socket);
    const body = 'x'.repeat(500_000);
    socket.write(
      `POST /avatars/0.png HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    socket.write('GET /avatars/0.png HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    const { bytes } = await closed;
    expect(bytes.toString('latin1').match(/HTTP\/1\.1 \d{3}/g)).toEqual([
      'HTTP/1.1 405',
      'HTTP/1.1 200',
    ]);
  });
});

describe('a client that still sends when it has had its last response', () => {
  it.each([
    ['plain', {}],
    ['with TLS', tlsSettings],
  ] as const)('is not reset, lest the response be lost, %s', async (kind, settings) => {
    await start({ settings });
    const socket = await app.connect(openHalf[kind]);
    const errors: Error[] = [];
    socket.on('error', (error) => errors.push(error));
    const { bytes } = collect(socket);
    socket.write(
      'GET /avatars/0.png HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 20\r\n\r\n0123456789',
    );
    await once(socket, 'end');
    // What comes too late is read, and the connection closed when the client closes it.
    const closed = once(socket, 'close');
    socket.write('01234');
    await sweeps();
    socket.end('56789');
    await closed;
    expect(errors).toEqual([]);
    expect(parseAnswer(bytes())).toMatchObject({ status: 200 });
  });

  it('is not waited for when it has had its time', async () => {
    await start();
    const socket = await app.connect(openHalf.plain);
    socket.on('error', () => undefined).resume();
    socket.write('GET /avatars/0.png HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    await once(socket, 'end');
    const isClosed = watchClose(socket);
    app.clock.advance(2 * clientLimits.lingerTimeoutMs);
    await sweeps();
    await expect
      .poll(() => {
        socket.write('anything'); // so that it hears of it
        return isClosed();
      })
      .toBe(true);
  });
});

describe('a connection that says nothing more', () => {
  it('is kept for longer than the proxy in front keeps it', () => {
    expect(clientLimits.keepAliveTimeoutMs).toBe(72_000); // deploy/nginx/darkroom.conf: 60 s
  });

  it.each(listeners)('is closed after its time, %s', async (_, settings, open) => {
    await start({ settings });
    const socket = await app.begin('/avatars/0.png', open);
    await once(socket, 'data');
    const isClosed = watchClose(socket);
    for (let passedMs = 0; passedMs < 70_000; passedMs += 10_000) {
      app.clock.advance(10_000);
      await sweeps();
    }
    expect(isClosed()).toBe(false);
    app.clock.advance(3_000);
    await expect.poll(isClosed).toBe(true);
  });

  it('is closed for good: what it asks after that is not begun', async () => {
    await start();
    const socket = await app.begin('/avatars/0.png', openHalf.plain);
    const ended = once(socket, 'end');
    await once(socket, 'data');
    app.clock.advance(73_000);
    await ended;
    expect(await app.countConnections()).toBe(1);
    socket.write('GET /attachments/1/2/a HTTP/1.1\r\nHost: a\r\n\r\n');
    await expect.poll(app.countConnections).toBe(0);
    expect(app.originals.reads.size).toBe(0);
  });

  it('is cut off if it goes on and on after the last word', async () => {
    await start({ clientLimits: { ...short, headTimeoutMs: 60_000, requestTimeoutMs: 60_000 } });
    const socket = await app.connect(openHalf.plain);
    const ended = once(socket.resume(), 'end');
    socket.write('garbage\r\n\r\n');
    await ended;
    trickle(socket, 'x');
    const closed = new Promise((resolve) => socket.once('close', resolve));
    for (let part = 0; part < 5; part += 1) {
      app.clock.advance(clientLimits.lingerTimeoutMs / 4);
      await sweeps();
    }
    await closed;
  });

  it.each([
    ['not a word', ''],
    ['half a greeting', '\u0016\u0003\u0001\u0002'],
    ['HTTP without TLS', 'GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n\r\n'],
  ])('is cut off in the handshake: %s', async (_, bytes) => {
    await start({ settings: tlsSettings });
    const socket = await app.connect();
    socket.write(bytes, 'latin1');
    const { tookMs } = await untilClosed(socket);
    expect(tookMs).toBeLessThan(2_000);
    expect(app.log.errors).toEqual([]);
  });
});

describe('a head that is too large', () => {
  const fields = (count: number, bytes: number): Record<string, string> =>
    Object.fromEntries(
      Array.from({ length: count }, (_, index) => [`x-${index}`, 'x'.repeat(bytes)]),
    );

  it.each([
    ['a long URL', `/icons/1/ab.png?v=${'x'.repeat(1_000_000)}`, {}],
    ['a long field', '/icons/1/ab.png', fields(1, 1_000_000)],
    ['many fields', '/icons/1/ab.png', fields(150, 1)],
    ['very many fields', '/icons/1/ab.png', fields(50_000, 1)],
  ])(
    'is refused, and the client hears of it though it is still sending: %s',
    async (_, path, headers) => {
      await start();
      const response = await app.send('GET', path, headers);
      expect(response.status).toBe(431);
      expect(JSON.parse(response.body.toString())).toMatchObject({ code: 'INVALID_FORM_BODY' });
      expect((await app.send('GET', '/avatars/0.png', fields(90, 100))).status).toBe(200);
    },
  );
});

/** Two of them, at least. */
async function sweeps(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 60));
}
