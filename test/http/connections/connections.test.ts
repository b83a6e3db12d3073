import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { type ConnectOptions, parseResponse } from '../../support/http/raw-http.ts';
import { tlsSettings } from '../../support/http/tls-files.ts';
import type { MemoryOrigin } from '../../support/memory-origin.ts';
import { type TestApp, useTestApp } from '../../support/test-app.ts';

let app: TestApp;
let origin: MemoryOrigin;

async function start(settings: Record<string, string>): Promise<void> {
  app = await useTestApp({ settings, clientLimits: { sweepIntervalMs: 5 } });
  origin = app.originals;
  // Larger than the buffers of a connection.
  origin.put('attachments/1/2/large', Buffer.alloc(48 * 1024 * 1024));
}

const open = async (options?: ConnectOptions) => (await app.connect(options)).resume();

const openMany = (length: number, options?: ConnectOptions) =>
  Promise.all(Array.from({ length }, () => open(options)));

async function request(socket: Socket, fields = ''): Promise<number> {
  socket.write(`GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n${fields}\r\n`);
  const [bytes] = await once(socket, 'data');
  return parseResponse(bytes).status;
}

const LARGE = 'GET /attachments/1/2/large HTTP/1.1\r\nHost: a\r\n\r\n';

describe('at the maximum number of connections', () => {
  it('evicts the connection that has been idle longest', async () => {
    await start({ MAX_CONNECTIONS: '3' });
    const gone = await open();
    await request(gone);
    gone.destroy();
    await expect.poll(app.countConnections).toBe(0);
    const clients = await openMany(3);
    for (const client of clients) expect(await request(client)).toBe(200);
    const [first, second, third] = clients;
    if (first) await request(first); // the second is now idle longest
    const newClient = await open();
    expect(await request(newClient)).toBe(200);
    await expect.poll(() => second?.closed).toBe(true);
    for (const client of [first, third, newClient]) expect(client?.closed).toBe(false);
  });

  it('evicts connections without a request before others', async () => {
    await start({ MAX_CONNECTIONS: '3' });
    const idle = await open();
    await request(idle);
    const silent = await openMany(2);
    const newClients = await openMany(2);
    for (const newClient of newClients) expect(await request(newClient)).toBe(200);
    await expect.poll(() => silent.map(({ closed }) => closed)).toEqual([true, true]);
    expect(idle.closed).toBe(false);
    expect(await request(idle)).toBe(200);
    // One line for each second with evictions.
    await expect.poll(() => app.log.entries.length).toBeGreaterThan(0);
    for (const entry of app.log.entries) {
      expect(entry).toMatchObject({ level: 'warn', details: { turnedAway: 0 } });
    }
  });

  it('keeps active connections and closes the new one', async () => {
    await start({ MAX_CONNECTIONS: '1' });
    const busy = await open();
    busy.pause().write(LARGE);
    await expect.poll(() => origin.openBodies).toBe(1);
    const newClient = await open();
    await expect.poll(() => newClient.closed).toBe(true);
    expect(busy.closed).toBe(false);
    const line = { level: 'warn', details: { turnedAway: 1, evicted: 0 } };
    await expect.poll(() => app.log.entries).toMatchObject([line]);
    busy.destroy();
    await expect.poll(() => origin.openBodies).toBe(0);
    expect((await app.send('GET', '/avatars/0.png')).status).toBe(200);
  });

  it('counts handshakes as connections', async () => {
    await start({ MAX_CONNECTIONS: '5', ...tlsSettings });
    const silent = await openMany(20, { isTls: false });
    const countClosed = () => silent.filter(({ closed }) => closed).length;
    await expect.poll(countClosed).toBeGreaterThanOrEqual(15);
    const client = await open();
    expect(await request(client)).toBe(200);
    // Connections in the handshake are evicted before idle clients.
    await openMany(20, { isTls: false });
    expect(await request(client)).toBe(200);
  });
});

describe('requests', () => {
  it('in progress are limited to half of the connections; others get a 503 with Retry-After', async () => {
    await start({ MAX_CONNECTIONS: '20' });
    const busy = await openMany(10);
    for (const socket of busy) socket.pause().write(LARGE);
    await expect.poll(() => origin.openBodies).toBe(10);
    const refused = await app.send('GET', '/avatars/0.png');
    expect(refused.status).toBe(503);
    expect(refused.headers).toMatchObject({ 'retry-after': '1', 'cache-control': 'no-store' });
    // The service keeps the connection of a proxy, but closes one with a pending body.
    const [proxy, slow] = [await open(), await open()];
    for (let time = 0; time < 3; time += 1) expect(await request(proxy)).toBe(503);
    expect(await request(slow, 'Content-Length: 5\r\n')).toBe(503);
    await expect.poll(() => slow.closed).toBe(true);
    expect(origin.openBodies).toBe(10);
    for (const socket of busy) socket.destroy();
    await expect.poll(() => origin.openBodies).toBe(0);
    expect(proxy.closed).toBe(false);
    expect(await request(proxy)).toBe(200);
  });

  it('that are pending on one connection are limited', async () => {
    await start({});
    const socket = (await open()).pause();
    socket.write(LARGE.repeat(32));
    await expect.poll(() => origin.openBodies).toBe(32);
    expect(socket.closed).toBe(false);
    socket.write(LARGE.repeat(2_000));
    socket.resume();
    await expect.poll(() => socket.closed).toBe(true);
    await expect.poll(() => origin.openBodies).toBe(0);
    expect(origin.reads.get('attachments/1/2/large')).toBe(32);
    expect((await app.send('GET', '/avatars/0.png')).status).toBe(200);
    expect(app.log.errors).toEqual([]);
  });
});
