import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { OriginalWriter } from '../../../src/pipeline/originals/original-writer.ts';
import { collect, parseAnswer } from '../../support/http/raw-http.ts';
import { samples } from '../../support/test-app.ts';
import { type RelayApp, uploadTarget, useRelayApp } from '../../support/uploads/relay-app.ts';

let relay: RelayApp;

const quick = { sweepIntervalMs: 20 };

/** Begins an upload of 1 MB, and sends some of it once it is asked for. */
async function begin(key: string, firstBytes = 1_000, terms = {}): Promise<Socket> {
  const socket = await relay.app.connect();
  const head = `PUT ${uploadTarget(key, terms)} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n`;
  socket.write(head);
  const [asked] = (await once(socket, 'data')) as [Buffer];
  expect(asked.toString()).toBe('HTTP/1.1 100 Continue\r\n\r\n');
  socket.write(Buffer.alloc(firstBytes, 'x'));
  return socket;
}

/** All that comes until the server hangs up. */
const restOf = async (socket: Socket) => parseAnswer(await collect(socket).whole());

/** Has the service's time pass, as long as the test goes on. */
function tick(stepMs: number): void {
  const ticking = setInterval(() => relay.app.clock.advance(stepMs), 50);
  onTestFinished(() => clearInterval(ticking));
}

/** Bytes that the one file in the storage has so far. */
const receivedBytesOf = async (): Promise<number> => {
  const [name = ''] = await relay.list();
  return (await stat(join(relay.folder, name))).size;
};

const countFiles = async (): Promise<number> => (await relay.list()).length;

describe('an upload', () => {
  test('that stalls is cut off after half a minute, and leaves nothing', async () => {
    relay = await useRelayApp({ uploadLimits: quick });
    const socket = await begin('attachments/1/1/still');
    await expect.poll(countFiles).toBe(1);
    const closed = restOf(socket);
    relay.app.clock.advance(29_000);
    await relay.app.get('/emojis/1.png');
    expect(await countFiles()).toBe(1);
    relay.app.clock.advance(2_000);
    // The connection lingers for what its client may still send.
    tick(1_000);
    const answer = await closed;
    expect(answer.status).toBe(408);
    expect(JSON.parse(answer.body.toString())).toMatchObject({ code: 'REQUEST_TIMEOUT' });
    expect(answer.headers.connection).toBe('close');
    expect(await countFiles()).toBe(0);
    expect(relay.requests).toMatchObject([
      { resource: 'custom emoji' },
      { resource: 'upload', status: 408, receivedBytes: 1_000 },
    ]);
  });

  test('at the least pace may take longer than half a minute', async () => {
    relay = await useRelayApp({ uploadLimits: quick });
    const socket = await begin('attachments/1/1/slow', 500_000);
    for (const [receivedBytes, nextBytes] of [
      [500_000, 495_000],
      [995_000, 5_000],
    ] as const) {
      await expect.poll(receivedBytesOf).toBe(receivedBytes);
      relay.app.clock.advance(29_000);
      await new Promise((resolve) => setTimeout(resolve, 3 * quick.sweepIntervalMs));
      socket.write(Buffer.alloc(nextBytes, 'x'));
    }
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(parseAnswer(answer).status).toBe(200);
  });

  test('whose client dies leaves nothing, and nothing in the log but its line', async () => {
    relay = await useRelayApp({ uploadLimits: quick });
    for (const [number, isReset] of [true, false].entries()) {
      const socket = await begin(`attachments/1/1/${number}`);
      await expect.poll(countFiles).toBe(1);
      if (isReset) socket.resetAndDestroy();
      else socket.destroy();
      await expect.poll(countFiles).toBe(0);
    }
    await expect.poll(() => relay.requests.length).toBe(2);
    for (const line of relay.requests) {
      expect([line.resource, [400, 499].includes(line.status)]).toEqual(['upload', true]);
    }
    expect(relay.app.log.entries.filter(({ level }) => level !== 'info')).toEqual([]);
  });

  test('may finish when its capability has expired meanwhile', async () => {
    let nowMs = 1_000_000_000_000;
    relay = await useRelayApp({ wallClock: () => nowMs });
    const terms = { expiresAtSeconds: nowMs / 1000 + 10 };
    const socket = await begin('attachments/1/1/late', 1_000, terms);
    nowMs += 60_000;
    socket.write(Buffer.alloc(999_000));
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(parseAnswer(answer).status).toBe(200);
  });

  test('has a place among 64; further ones get a 503', async () => {
    relay = await useRelayApp({ uploadLimits: { ...quick, maxUploads: 4 } });
    await relay.put('emojis/1', samples.png);
    const sockets = await Promise.all([1, 2, 3, 4].map((n) => begin(`attachments/1/1/${n}`)));
    const one = uploadTarget('attachments/1/1/5');
    const length = { 'Content-Length': '1', Expect: '100-continue' };
    const refused = await relay.app.send('PUT', one, length);
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1']);
    expect(JSON.parse(refused.body.toString())).toMatchObject({ code: 'OVERLOADED' });
    // They hold up nobody else.
    expect((await relay.app.send('GET', '/emojis/1.png')).status).toBe(200);
    sockets[0]?.destroy();
    await expect
      .poll(async () => (await relay.app.send('PUT', one, { 'Content-Length': '0' })).status)
      .toBe(200);
  });
});

describe('a storage', () => {
  const failing = (write: OriginalWriter['write']): OriginalWriter => ({
    write,
    has: async () => false,
    heldBytesOf: () => 0,
    writePart: undefined,
  });

  test('that fails is a 502, with its reason in the log', async () => {
    const writer = failing(async () => Promise.reject(new Error('the disk is full')));
    relay = await useRelayApp({ originalWriter: writer });
    const answer = await relay.app.send('PUT', uploadTarget('emojis/1'), {
      'Content-Length': '0',
    });
    expect(answer.status).toBe(502);
    expect(JSON.stringify(answer)).not.toContain('full');
    expect(JSON.parse(answer.body.toString())).toMatchObject({ code: 'ORIGIN_ERROR' });
  });

  /** It takes the beginning, and fails once it is stopped. */
  const startHanging = async (failure: Error): Promise<void> => {
    const originalWriter = failing(async (_key, chunks, { signal }) => {
      for await (const _ of chunks) break;
      await once(signal, 'abort');
      throw failure;
    });
    relay = await useRelayApp({ originalWriter, uploadLimits: quick });
  };

  test('that hangs is a 504, for which its client is not blamed', async () => {
    await startHanging(new Error('stopped'));
    const socket = await begin('attachments/1/1/a', 600_000);
    const closed = restOf(socket);
    tick(5_000);
    expect((await closed).status).toBe(504);
  });

  test('that cannot take back an upload whose client has gone is in the log', async () => {
    const cause = new Error('no route');
    await startHanging(new Error('The parts cannot be removed.', { cause }));
    const socket = await begin('attachments/1/1/a');
    socket.destroy();
    await expect
      .poll(() => relay.app.log.entries.filter(({ level }) => level === 'warn'))
      .toMatchObject([
        {
          details: {
            key: 'attachments/1/1/a',
            reason: 'The parts cannot be removed: no route',
          },
          message: 'an upload that was stopped may have left something behind',
        },
      ]);
  });
});
