import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { collect, connectSecurely, connectTo, watchClose } from '../../support/http/raw-http.ts';
import { tlsSettings } from '../../support/http/tls-files.ts';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { samples, type TestApp, type TestAppOptions, useTestApp } from '../../support/test-app.ts';

const WINDOW_MS = 60_000;
/** The same where few more requests could be taken. */
const CROWDED_WINDOW_MS = 10_000;
/** More than the buffers of a connection hold: 4 MiB at the sender, 6 at the receiver. */
const LARGE_BYTES = 48 * 1024 * 1024;
const large = Buffer.alloc(LARGE_BYTES);

let app: TestApp;
let port: number;
let origin: MemoryOrigin;

async function start(options: TestAppOptions = {}): Promise<void> {
  origin = new MemoryOrigin();
  origin.put(LARGE.slice(1), large);
  app = await useTestApp({ origin, clientLimits: { sweepIntervalMs: 5 }, ...options });
  port = await app.listen();
}

/** By which the service's time passes. */
const STEP_MS = 2_000;

/** Lets the service's time pass, a step for each look, until something has happened; returns how long. */
async function passTimeUntil(hasHappened: () => boolean, atMostMs = 4 * WINDOW_MS) {
  let passedMs = 0;
  while (!hasHappened() && passedMs < atMostMs) {
    app.clock.advance(STEP_MS);
    passedMs += STEP_MS;
    await new Promise((resolve) => setTimeout(resolve, 7)); // a sweep
  }
  expect(hasHappened()).toBe(true);
  return passedMs;
}

async function passTime(durationMs: number): Promise<void> {
  const end = app.clock.nowMs() + durationMs;
  await passTimeUntil(() => app.clock.nowMs() >= end, durationMs + STEP_MS);
}

const LARGE = '/attachments/1/2/large';
const REQUEST = `GET ${LARGE} HTTP/1.1\r\nHost: a\r\n\r\n`;

/** What the system still has to send from a port (Linux, proc(5)). */
function countUnsentBytes(from: number): number {
  const local = new RegExp(` [0-9A-F]{8}:${from.toString(16).toUpperCase().padStart(4, '0')} `);
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n');
  const queues = lines.flatMap((line) => {
    const [address, , state, queue] = line.trim().split(/ +/).slice(1);
    return state !== '0A' && local.test(` ${address} `) ? (queue?.split(':')[0] ?? []) : [];
  });
  return queues.reduce((sum, queue) => sum + Number.parseInt(queue, 16), 0);
}

/** A client that asks for the large attachment and takes no byte of it. */
async function askAndStall(connectClient = connectTo) {
  const socket = await app.begin(LARGE, connectClient);
  const isCut = watchClose(socket.pause());
  await expect.poll(() => origin.openBodies).toBe(1);
  return { socket, isCut };
}

/** The client is cut off after this time, give or take. */
async function expectCutAfter(windowMs: number): Promise<void> {
  const passedMs = await passTimeUntil(() => origin.openBodies === 0);
  expect(passedMs).toBeGreaterThanOrEqual(windowMs);
  expect(passedMs).toBeLessThan(1.5 * windowMs);
}

describe('a client that does not take its response', () => {
  it('is cut off after a minute, and what it held is let go', async () => {
    await start();
    await askAndStall();
    await expect.poll(() => countUnsentBytes(port)).toBeGreaterThan(1_000_000);
    await expectCutAfter(WINDOW_MS);
    // Reset, not just closed: the system would hold 4 MiB, and go on trying to deliver them.
    await expect.poll(() => countUnsentBytes(port)).toBe(0);
    expect(app.log.entries).toMatchObject([{ level: 'warn', details: { slowReaders: 1 } }]);
  });

  it('is cut off sooner where few more requests could be taken', async () => {
    await start({ settings: { MAX_CONNECTIONS: '2' } });
    await askAndStall();
    await expectCutAfter(CROWDED_WINDOW_MS);
  });

  it('is cut off too if it takes a little now and then', async () => {
    await start();
    const { socket } = await askAndStall();
    const passedMs = await passTimeUntil(() => {
      socket.read(200); // 100 B/s
      return origin.openBodies === 0;
    });
    expect(passedMs).toBeLessThan(3 * WINDOW_MS);
  });

  it.each([
    ['plain', {}, connectTo],
    ['with TLS', tlsSettings, connectSecurely],
  ] as const)('stays for as long as it takes some: %s', async (_, settings, connectClient) => {
    await start({ settings });
    const { socket, isCut } = await askAndStall(connectClient);
    let received = 0;
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
    });
    for (let part = 1; part <= 3; part += 1) {
      const enough = received + 4 * 1024 * 1024;
      socket.resume();
      await expect.poll(() => received, { interval: 1 }).toBeGreaterThan(enough);
      socket.pause();
      await passTime(0.8 * WINDOW_MS);
    }
    expect(isCut()).toBe(false);
    socket.resume();
    await expect.poll(() => received).toBeGreaterThan(LARGE_BYTES);
    await expect.poll(() => origin.openBodies).toBe(0);
  });

  it('is not one that waits for the origin, or for the response before its own', async () => {
    const originals = new MemoryOrigin();
    originals.put('attachments/1/2/stalls', Buffer.alloc(20_000));
    const body = new Readable({ read: () => undefined });
    body.push(Buffer.alloc(10_000));
    originals.alter = (object) => ({ ...object, body });
    await start({ origin: originals });
    const socket = await app.begin('/attachments/1/2/stalls');
    const { bytes } = collect(socket);
    socket.write('GET /avatars/0.png HTTP/1.1\r\nHost: a\r\n\r\n');
    await expect.poll(() => bytes().length).toBeGreaterThan(10_000);
    await passTime(3 * WINDOW_MS);
    body.push(Buffer.alloc(10_000));
    body.push(null);
    await expect
      .poll(() =>
        bytes()
          .toString('latin1')
          .match(/HTTP\/1\.1 200 OK/g),
      )
      .toHaveLength(2);
  });

  it.each<[string, (socket: Socket) => unknown]>([
    ['that is cut off', () => passTimeUntil(() => origin.openBodies === 0)],
    ['that leaves', (socket) => socket.destroy()],
  ])('%s takes its pipelined requests along, which hold nothing any more', async (_, end) => {
    await start();
    const { socket } = await askAndStall();
    socket.write(REQUEST.repeat(3));
    await expect.poll(() => origin.openBodies).toBe(4);
    await end(socket);
    await expect.poll(() => origin.openBodies).toBe(0);
  });
});

describe('a large result', () => {
  /** Renders this, whatever is asked. */
  const startWithResult = (result: Buffer): Promise<void> => {
    const originals = new MemoryOrigin();
    originals.put('icons/1/ab', samples.jpeg);
    return start({ origin: originals, renderer: { render: async () => result } });
  };

  it('waits in the store for its client, not in a buffer for each', async () => {
    await startWithResult(large);
    let mostBytes = 0;
    app.server.server.on('request', (_, response) => {
      const look = setInterval(() => {
        mostBytes = Math.max(mostBytes, response.writableLength);
      }, 1);
      response.once('close', () => clearInterval(look));
    });
    const socket = await app.begin('/icons/1/ab.webp');
    let received = 0;
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
      socket.pause();
      setImmediate(() => socket.resume());
    });
    await expect.poll(() => received, { timeout: 10_000 }).toBeGreaterThan(LARGE_BYTES);
    expect(mostBytes).toBeGreaterThan(0);
    expect(mostBytes).toBeLessThan(1024 * 1024);
  });

  it('is whole', async () => {
    const large = Buffer.from(Array.from({ length: 900_000 }, (_, index) => index % 251));
    await startWithResult(large);
    const whole = await app.send('GET', '/icons/1/ab.webp');
    expect(whole.body.equals(large)).toBe(true);
  });
});
