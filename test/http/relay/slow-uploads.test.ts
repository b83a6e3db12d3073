import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { OriginalWriter } from '../../../src/pipeline/originals/original-writer.ts';
import { collect, parseResponse } from '../../support/http/raw-http.ts';
import { samples } from '../../support/test-app.ts';
import { type RelayApp, uploadTarget, useRelayApp } from '../../support/uploads/relay-app.ts';

let relay: RelayApp;

const fastSweep = { sweepIntervalMs: 20 };

/** Begins an upload of 1 MB, and sends some bytes after the 100 (Continue). */
async function begin(key: string, firstBytes = 1_000, terms = {}): Promise<Socket> {
  const socket = await relay.app.connect();
  const head = `PUT ${uploadTarget(key, terms)} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n`;
  socket.write(head);
  const [interim] = await once(socket, 'data');
  expect(String(interim)).toBe('HTTP/1.1 100 Continue\r\n\r\n');
  socket.write(Buffer.alloc(firstBytes, 'x'));
  return socket;
}

/** Waits for the server to close; returns the code of its response, if any. */
async function restOf(socket: Socket) {
  const { status, headers, body } = parseResponse(await collect(socket).allBytes());
  return { status, headers, code: JSON.parse(body.toString()).code };
}

async function statusOf(socket: Socket): Promise<number> {
  const [response] = await once(socket, 'data');
  return parseResponse(response).status;
}

function advanceClock(stepMs: number): void {
  const timer = setInterval(() => relay.app.clock.advance(stepMs), 50);
  onTestFinished(() => clearInterval(timer));
}

const receivedBytesOf = async (): Promise<number> => {
  const [name = ''] = await relay.list();
  return (await stat(join(relay.directory, name))).size;
};

const countFiles = async (): Promise<number> => (await relay.list()).length;

describe('an upload', () => {
  test('that stalls is cut off after half a minute, and stores nothing', async () => {
    relay = await useRelayApp({ uploadLimits: fastSweep });
    const socket = await begin('attachments/1/1/still');
    await expect.poll(countFiles).toBe(1);
    const closed = restOf(socket);
    relay.app.clock.advance(29_000);
    await relay.app.get('/emojis/1.png');
    expect(await countFiles()).toBe(1);
    relay.app.clock.advance(2_000);
    // The connection lingers for bytes that the client still sends.
    advanceClock(1_000);
    const headers = expect.objectContaining({ connection: 'close' });
    expect(await closed).toEqual({ status: 408, code: 'REQUEST_TIMEOUT', headers });
    expect(await countFiles()).toBe(0);
    expect(relay.app.requests).toMatchObject([
      { resource: 'custom emoji' },
      { resource: 'upload', status: 408, receivedBytes: 1_000 },
    ]);
  });

  test('at the minimum rate can take longer than half a minute', async () => {
    relay = await useRelayApp({ uploadLimits: fastSweep });
    const socket = await begin('attachments/1/1/slow', 500_000);
    for (const [receivedBytes, nextBytes] of [
      [500_000, 495_000],
      [995_000, 5_000],
    ] as const) {
      await expect.poll(receivedBytesOf).toBe(receivedBytes);
      relay.app.clock.advance(29_000);
      await sleep(3 * fastSweep.sweepIntervalMs);
      socket.write(Buffer.alloc(nextBytes, 'x'));
    }
    expect(await statusOf(socket)).toBe(200);
  });

  test('whose client disconnects stores nothing, and logs only its request line', async () => {
    relay = await useRelayApp({ uploadLimits: fastSweep });
    for (const [number, isReset] of [true, false].entries()) {
      const socket = await begin(`attachments/1/1/${number}`);
      await expect.poll(countFiles).toBe(1);
      if (isReset) socket.resetAndDestroy();
      else socket.destroy();
      await expect.poll(countFiles).toBe(0);
    }
    await expect.poll(() => relay.app.requests.length).toBe(2);
    for (const line of relay.app.requests) {
      expect([line.resource, [400, 499].includes(line.status)]).toEqual(['upload', true]);
    }
    expect(relay.app.log.entries.filter(({ level }) => level !== 'info')).toEqual([]);
  });

  test('can finish after its capability has expired', async () => {
    let nowMs = 1_000_000_000_000;
    relay = await useRelayApp({ wallClock: () => nowMs });
    const terms = { expiresAtSeconds: nowMs / 1000 + 10 };
    const socket = await begin('attachments/1/1/late', 1_000, terms);
    nowMs += 60_000;
    socket.write(Buffer.alloc(999_000));
    expect(await statusOf(socket)).toBe(200);
  });

  test('is one of at most 64; further ones get a 503', async () => {
    relay = await useRelayApp({ uploadLimits: { ...fastSweep, maxUploads: 4 } });
    await relay.put('emojis/1', samples.png);
    const sockets = await Promise.all([1, 2, 3, 4].map((n) => begin(`attachments/1/1/${n}`)));
    const one = uploadTarget('attachments/1/1/5');
    const length = { 'Content-Length': '1', Expect: '100-continue' };
    const { status, headers, body } = await relay.app.send('PUT', one, length);
    expect([status, headers['retry-after']]).toEqual([503, '1']);
    expect(JSON.parse(body.toString())).toMatchObject({ code: 'OVERLOADED' });
    expect((await relay.app.send('GET', '/emojis/1.png')).status).toBe(200);
    sockets[0]?.destroy();
    const empty = async () => (await relay.app.send('PUT', one, { 'Content-Length': '0' })).status;
    await expect.poll(empty).toBe(200);
  });
});

describe('a storage', () => {
  const start = async (write: OriginalWriter['write']): Promise<void> => {
    const rest = { has: async () => false, memoryBytesOf: () => 0, writePart: undefined };
    relay = await useRelayApp({ originalWriter: { write, ...rest }, uploadLimits: fastSweep });
  };
  const startHanging = (failure: Error) =>
    start(async (_key, chunks, { signal }) => {
      for await (const _ of chunks) break;
      await once(signal, 'abort');
      throw failure;
    });

  test('that fails causes a 502, and the log has the reason', async () => {
    await start(() => Promise.reject(new Error('the disk is full')));
    const target = uploadTarget('emojis/1');
    const { status, body } = await relay.app.send('PUT', target, { 'Content-Length': '0' });
    expect([status, JSON.parse(body.toString()).code]).toEqual([502, 'ORIGIN_ERROR']);
    expect(body.toString()).not.toContain('full');
    const err = { cause: { message: 'the disk is full' } };
    expect(relay.app.log.errors).toMatchObject([{ err }]);
  });

  test('that hangs causes a 504, not an error of the client', async () => {
    await startHanging(new Error('stopped'));
    const socket = await begin('attachments/1/1/a', 600_000);
    const closed = restOf(socket);
    advanceClock(5_000);
    expect(await closed).toMatchObject({ status: 504, code: 'ORIGIN_TIMEOUT' });
  });

  test('that cannot abort the upload of a disconnected client is logged', async () => {
    const cause = new Error('no route');
    await startHanging(new Error('The parts cannot be removed.', { cause }));
    const socket = await begin('attachments/1/1/a');
    socket.destroy();
    const details = { key: 'attachments/1/1/a', reason: 'The parts cannot be removed: no route' };
    const message = 'cleaning up an aborted upload failed; a partial upload may remain';
    const warnings = () => relay.app.log.entries.filter(({ level }) => level === 'warn');
    await expect.poll(warnings).toMatchObject([{ details, message }]);
  });
});
