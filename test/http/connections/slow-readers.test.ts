import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { collect, parseResponse } from '../../support/http/raw-http.ts';
import { eitherListener } from '../../support/http/tls-files.ts';
import { samples, type TestApp, type TestAppOptions, useTestApp } from '../../support/test-app.ts';

const WINDOW_MS = 60_000;
/** Window when few further requests can be accepted. */
const CROWDED_WINDOW_MS = 10_000;
/** Larger than the buffers of a connection: 4 MiB at the sender, 6 MiB at the receiver. */
const LARGE_BYTES = 48 * 1024 * 1024;
const large = Buffer.alloc(LARGE_BYTES);
const LARGE = '/attachments/1/2/large';

let app: TestApp;
let port: number;

async function start(options: TestAppOptions = {}): Promise<void> {
  app = await useTestApp({ clientLimits: { sweepIntervalMs: 5 }, ...options });
  app.originals.put(LARGE.slice(1), large);
  port = await app.listen();
}

const countBodies = (): number => app.originals.openBodies;

const STEP_MS = 2_000;

/** Advances the service's clock until a condition holds; returns the elapsed time. */
async function passTimeUntil(hasHappened: () => boolean, atMostMs = 4 * WINDOW_MS) {
  let passedMs = 0;
  while (!hasHappened() && passedMs < atMostMs) {
    app.clock.advance(STEP_MS);
    passedMs += STEP_MS;
    await sleep(7); // a sweep
  }
  expect(hasHappened()).toBe(true);
  return passedMs;
}

async function passTime(durationMs: number): Promise<void> {
  const end = app.clock.nowMs() + durationMs;
  await passTimeUntil(() => app.clock.nowMs() >= end, durationMs + STEP_MS);
}

/** Returns the unsent bytes of a port (Linux, proc(5)). */
function countUnsentBytes(from: number): number {
  const port = from.toString(16).toUpperCase().padStart(4, '0');
  // State 0A is LISTEN.
  const line = new RegExp(`^ *\\d+: [0-9A-F]{8}:${port} \\S+ (?!0A)\\S+ ([0-9A-F]+):`, 'gm');
  const queues = [...readFileSync('/proc/net/tcp', 'utf8').matchAll(line)];
  return queues.reduce((sum, [, queue = '']) => sum + Number.parseInt(queue, 16), 0);
}

async function requestAndStall(): Promise<Socket> {
  const socket = (await app.begin(LARGE)).pause();
  await expect.poll(countBodies).toBe(1);
  return socket;
}

async function expectCutAfter(windowMs: number): Promise<void> {
  const passedMs = await passTimeUntil(() => countBodies() === 0);
  expect(passedMs).toBeGreaterThanOrEqual(windowMs);
  expect(passedMs).toBeLessThan(1.5 * windowMs);
}

describe('a client that does not read its response', () => {
  it('is cut off after a minute, and its memory is freed', async () => {
    await start();
    await requestAndStall();
    await expect.poll(() => countUnsentBytes(port)).toBeGreaterThan(1_000_000);
    await expectCutAfter(WINDOW_MS);
    // A reset: after a close, the kernel would buffer 4 MiB and try to deliver them.
    await expect.poll(() => countUnsentBytes(port)).toBe(0);
    expect(app.log.entries).toMatchObject([{ level: 'warn', details: { slowReaders: 1 } }]);
  });

  it('is cut off sooner if few further requests can be accepted', async () => {
    await start({ settings: { MAX_CONNECTIONS: '2' } });
    await requestAndStall();
    await expectCutAfter(CROWDED_WINDOW_MS);
  });

  it('is cut off if it reads only a little now and then', async () => {
    await start();
    const socket = await requestAndStall();
    const passedMs = await passTimeUntil(() => {
      socket.read(200); // 100 B/s
      return countBodies() === 0;
    });
    expect(passedMs).toBeLessThan(3 * WINDOW_MS);
  });

  it.each(eitherListener)('stays connected while it reads: %s', async (_, settings) => {
    await start({ settings });
    const socket = await requestAndStall();
    const received = (): number => socket.bytesRead;
    for (let part = 1; part <= 3; part += 1) {
      const enough = received() + 4 * 1024 * 1024;
      socket.resume();
      await expect.poll(received, { interval: 1 }).toBeGreaterThan(enough);
      socket.pause();
      await passTime(0.8 * WINDOW_MS);
    }
    expect(socket.closed).toBe(false);
    socket.resume();
    await expect.poll(received).toBeGreaterThan(LARGE_BYTES);
    await expect.poll(countBodies).toBe(0);
  });

  it('does not count as stalled while it waits for the origin, or for an earlier response', async () => {
    await start();
    app.originals.put('attachments/1/2/stalls', Buffer.alloc(20_000));
    const body = new PassThrough();
    body.write(Buffer.alloc(10_000));
    app.originals.alter = (object) => ({ ...object, body });
    const socket = await app.begin('/attachments/1/2/stalls');
    const { bytes } = collect(socket);
    socket.write('GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n\r\n');
    await expect.poll(() => bytes().length).toBeGreaterThan(10_000);
    await passTime(3 * WINDOW_MS);
    body.end(Buffer.alloc(10_000));
    const heads = () =>
      bytes()
        .toString('latin1')
        .match(/HTTP\/1\.1 200 OK/g);
    await expect.poll(heads).toHaveLength(2);
  });

  it.each<[string, (socket: Socket) => unknown]>([
    ['a client that is cut off', () => passTimeUntil(() => countBodies() === 0)],
    ['a client that disconnects', (socket) => socket.destroy()],
  ])('%s also ends its pipelined requests, and frees their memory', async (_, end) => {
    await start();
    const socket = await requestAndStall();
    socket.write(`GET ${LARGE} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(3));
    await expect.poll(countBodies).toBe(4);
    await end(socket);
    await expect.poll(countBodies).toBe(0);
  });
});

it('a large result is buffered once in the store, not for each client, and arrives completely', async () => {
  const result = Buffer.from(large).fill('not only zeros');
  await start({ renderer: { render: async () => result } });
  app.originals.put('icons/1/ab', samples.jpeg);
  let maxBytes = 0;
  app.server.server.on('request', (_, response) => {
    const sampling = setInterval(() => {
      maxBytes = Math.max(maxBytes, response.writableLength);
    }, 1);
    response.once('close', () => clearInterval(sampling));
  });
  const socket = await app.connect();
  const { allBytes } = collect(socket);
  socket.write('GET /icons/1/ab.webp HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  socket.on('data', () => {
    socket.pause();
    setImmediate(() => socket.resume());
  });
  expect(parseResponse(await allBytes()).body.equals(result)).toBe(true);
  expect(maxBytes).toBeGreaterThan(0);
  expect(maxBytes).toBeLessThan(1024 * 1024);
});
